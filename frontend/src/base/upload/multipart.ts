/** A multipart/form-data body in one buffer: the browser's FormData needs a blob per file, each with a round trip to another process. */

export interface Part {
  /** Path of the file on the server. */
  name: string;
  /** CRC-32 of the bytes, eight hexadecimal digits. */
  sum: string;
  bytes: Uint8Array;
}

export interface Multipart {
  type: string;
  body: Uint8Array<ArrayBuffer>;
}

/** `boundary`: letters and digits that no part holds. */
export function writeMultipart(parts: readonly Part[], boundary: string): Multipart {
  const encoder = new TextEncoder();
  const pieces: Uint8Array[] = [];
  for (const { name, sum, bytes } of parts) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="crc32"\r\n\r\n${sum}\r\n--${boundary}\r\n`;
    const file = `Content-Disposition: form-data; name="files"; filename="${quoted(name)}"\r\n`;
    pieces.push(encoder.encode(`${head}${file}Content-Type: application/octet-stream\r\n\r\n`), bytes, LINE);
  }
  pieces.push(encoder.encode(`--${boundary}--\r\n`));
  const body = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}

const LINE = Uint8Array.of(13, 10);

/** Quotes are escaped with a backslash: a browser's `%22` could also be part of the name. */
function quoted(name: string): string {
  return name.replace(/["\\]/g, "\\$&").replace(/\r/g, "%0D").replace(/\n/g, "%0A");
}
