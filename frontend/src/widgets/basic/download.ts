/** Hands a text that was made here to the browser as a file. */
export function downloadText(name: string, text: string, type: string): void {
  saveBlob(name, new Blob([text], { type }));
}

/** Hands what the page holds to the browser as a file. */
export function saveBlob(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
