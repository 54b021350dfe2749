/** Draws pictures for tests, as the PNG files that browsers show. */

import { deflateSync } from "node:zlib";

type Colour = readonly [red: number, green: number, blue: number];

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(Bun.hash.crc32(body), body.length + 4);
  return framed;
}

/** `at` is asked for each pixel. */
function drawPng(width: number, height: number, at: (x: number, y: number) => Colour): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits for each of red, green and blue.
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (1 + 3 * width));
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows.set(at(x, y), y * (1 + 3 * width) + 1 + 3 * x);
  const parts = [
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

const [WHITE, GREY, GREEN, RED]: readonly Colour[] = [
  [250, 250, 248],
  [190, 194, 198],
  [23, 111, 66],
  [185, 37, 43],
] as const;

/** A page with lines of text and a button, which is as far from the left as it is asked to be. */
export const drawPage = (buttonAt: number, other: number = buttonAt): Uint8Array<ArrayBuffer> =>
  drawPng(480, 300, (x, y) => {
    const isButton = (at: number) => y >= 220 && y < 260 && x >= at && x < at + 140;
    if (isButton(buttonAt) !== isButton(other)) return RED!;
    if (isButton(buttonAt)) return GREEN!;
    const isLine = y > 30 && y < 200 && y % 24 < 10 && x > 30 && x < 420 - ((y * 7) % 120);
    return isLine ? GREY! : WHITE!;
  });
