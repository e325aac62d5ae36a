// Export the drawing as a separate file that contains the page's current colours.

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

export function exported(drawn: SVGSVGElement, name: string): void {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const property of PROPERTIES) to[at]!.setAttribute(property, style.getPropertyValue(property));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of Object.entries({ x: "-12", y: "-12", width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor })) ground.setAttribute(key, value);
  copy.prepend(ground);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
