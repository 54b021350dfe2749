/** A large body is read beside what others ask. */

import { expect, test } from "bun:test";
import { lengthOf, receiveBody } from "../../src/http/body.ts";

test("a large body that is there already lets others have their turns while it is read", async () => {
  const [pieces, piece] = [64, new Uint8Array(256 * 1024)];
  let sent = 0;
  const body = new ReadableStream({
    pull: (controller) => (sent++ < pieces ? controller.enqueue(piece) : controller.close()),
  });
  let turns = 0;
  let isOver = false;
  const count = () => void (!isOver && (turns++, setImmediate(count)));
  setImmediate(count);
  const request = new Request("http://localhost/", { method: "POST", body });
  const { blocks } = await receiveBody(request, { maxBytes: 64 * 1_048_576 });
  isOver = true;
  expect(lengthOf(blocks)).toBe(pieces * piece.byteLength);
  // Of 16 MiB one at least for every two.
  expect(turns).toBeGreaterThan(8);
});
