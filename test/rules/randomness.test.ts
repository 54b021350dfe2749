/** Ids as generators draw them, each alphabet some hundred times: how often two of them read alike. */

import { describe, expect, test } from "bun:test";
import { fingerprint } from "../../src/rules/fingerprint.ts";
import { plainWord } from "../../src/rules/randomness.ts";
import { createRandom } from "../random.ts";

const DIGITS = "0123456789";
const LOWER = "abcdefghijklmnopqrstuvwxyz";
const BASE36 = DIGITS + LOWER;
const LETTERS = LOWER + LOWER.toUpperCase();
const BASE62 = DIGITS + LETTERS;
const NANOID = `${BASE62}_-`;
const HEX = `${DIGITS}abcdef`;
const KUBERNETES = "bcdfghjklmnpqrstvwxz2456789";
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

type Draw = (alphabet: string, length: number) => string;

/** With how alike they have to read: what is short may look like a word now and then. */
const DRAWN: [string, number, (draw: Draw) => string][] = [
  ["a pod", 0.98, (draw) => `pod checkout-${draw(KUBERNETES, 9)}-${draw(KUBERNETES, 5)} is not ready`],
  ["a pod of a daemon", 0.98, (draw) => `pod fluentd-${draw(KUBERNETES, 5)} is not ready`],
  ["a class of emotion", 0.93, (draw) => `no element with the class .css-${draw(BASE36, 7)}`],
  ["a class of a CSS module", 0.95, (draw) => `no element with the class .Button_root__${draw(BASE62, 5)}`],
  ["a class of styled-components", 0.95, (draw) => `no element with the class .sc-${draw(LETTERS, 6)}`],
  ["six of base 36", 0.8, (draw) => `job ${draw(BASE36, 6)} has lost its lease`],
  ["eight of base 36", 0.9, (draw) => `job ${draw(BASE36, 8)} has lost its lease`],
  ["eleven of base 36", 0.95, (draw) => `job ${draw(BASE36, 11)} has lost its lease`],
  ["a nano id", 0.99, (draw) => `upload ${draw(NANOID, 21)} has no parts`],
  ["ten of base 62", 0.9, (draw) => `upload ${draw(BASE62, 10)} has no parts`],
  ["a short SHA", 0.97, (draw) => `reference ${draw(HEX, 7)} is not a tree`],
  ["an image", 0.98, (draw) => `image shop:${draw(HEX, 12)} cannot be pulled`],
  ["a ULID", 0.99, (draw) => `event 01${draw(CROCKFORD, 24)} is lost`],
  ["a request id of AWS", 0.99, (draw) => `slow down (Request ID: ${draw(CROCKFORD, 16)})`],
  ["a session", 0.95, (draw) => `session sess_${draw(BASE62, 12)} has run out`],
  ["a port", 0.99, (draw) => `nobody listens at shop:${draw("123456", 1)}${draw(DIGITS, 4)} yet`],
  ["a folder for a while", 0.99, (draw) => `cannot read /tmp/${draw(BASE62, 6)}/orders/export.csv any more`],
  ["the hash of an object", 0.99, (draw) => `com.acme.Invoice@${draw(HEX, 7)} is booked twice`],
  ["an address in memory", 0.99, (draw) => `<Account object at 0x${draw(HEX, 12)}> cannot be written`],
  ["a document of MongoDB", 0.99, (draw) => `document ${draw(HEX, 24)} is locked twice`],
  [
    "an address of a preview",
    0.9,
    (draw) => `https://shop-${draw(BASE36, 6)}.acme.dev/cart/${draw(BASE36, 8)} is slow`,
  ],
];

describe("what was drawn", () => {
  test.each(DRAWN)("as %s reads alike, %d of all pairs", (_, share, write) => {
    const random = createRandom(7);
    const draw: Draw = (alphabet, length) => random.text(length, alphabet);
    const COUNT = 500;
    const counts = new Map<string, number>();
    for (let index = 0; index < COUNT; index++) {
      const message = write(draw);
      const { digest } = fingerprint({ message, stack: null, kind: null, suite: "", name: "a", file: null });
      counts.set(digest, (counts.get(digest) ?? 0) + 1);
    }
    const alike = [...counts.values()].reduce((sum, count) => sum + (count / COUNT) ** 2, 0);
    expect(alike).toBeGreaterThan(share);
  });
});

describe("what somebody chose", () => {
  test.each(
    (
      "checkout-total order_items ERR_MODULE_NOT_FOUND ERR_HTTP_HEADERS_SENT getUserById OrderConfirmation " +
      "css-loader data-testid UserServiceImpl toHaveBeenCalledTimes ECONNREFUSED ENOTFOUND rabbitmq postgresql " +
      "elasticsearch kubernetes utf8 sha256 base64 oauth2 http2 ipv4 i18n k8s arm64 x86 hasOwnProperty innerHTML " +
      "NonExistentQueue soft_unicode created_at is_active_user strict-mode-violation PermissionDenied"
    ).split(" "),
  )("stays: %s", (word) => expect(plainWord(word)).toBe(word));

  test.each([
    ["user42", "user<n>"],
    ["order_12345", "order_<n>"],
    ["worker-3", "worker-<n>"],
    ["checkout-7d9f8b6c5d-x2k4q", "checkout-<id>"],
    ["Button_root__3xY9z", "Button_root__<id>"],
    ["9fceb02", "<id>"],
  ])("and a number within it goes: %s", (word, plain) => expect(plainWord(word)).toBe(plain));
});
