// The matrix's own bundle: only the page of an audit has one.
import { render } from "preact";
import { MatrixPane } from "./matrix/matrix";

const place = document.querySelector<HTMLElement>("[data-island=matrix]");
if (place) {
  render(<MatrixPane path={place.dataset.path ?? ""} onShown={() => document.getElementById(place.dataset.twin ?? "")?.remove()} />, place);
}
