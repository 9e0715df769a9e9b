// Every visible text whose letters stand out less from their ground than people with weak eyes need (WCAG AA, 4.5 to 1).
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([red, green, blue]) => {
    const linear = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ground = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255, 255];
  };
  const weak = [];
  for (const node of document.querySelectorAll("body *")) {
    const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!hasText || node.closest("script, .unseen, .skip, .heat, #tip, option") || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const ink = light(rgba(node.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const behind = light(ground(node));
    const ratio = (Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05);
    if (ratio < 4.5) weak.push(node.textContent.trim().slice(0, 40) + ": " + ratio.toFixed(2));
  }
  return weak;
}
