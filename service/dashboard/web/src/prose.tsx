// A message of a finding: what stands between backticks is code.
import { visible } from "./words";

export function Prose({ text }: { text: string }) {
  return <>{visible(text).split("`").map((piece, at) => (at % 2 ? <code key={at}>{piece}</code> : piece))}</>;
}
