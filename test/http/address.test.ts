import { expect, test } from "bun:test";
import { clientAddress, createAddressList } from "../../src/http/address.ts";

const none = createAddressList([]);
const proxies = createAddressList(["10.0.0.0/8", "::1"]);

test("without a trusted proxy the peer is the client, whatever it writes", () => {
  expect(clientAddress("203.0.113.9", "1.2.3.4", none)).toBe("203.0.113.9");
  expect(clientAddress("203.0.113.9", "1.2.3.4", proxies)).toBe("203.0.113.9");
});

test("behind trusted proxies the client is the last hop that is none of them", () => {
  expect(clientAddress("10.0.0.1", "6.6.6.6, 203.0.113.9, 10.0.0.2", proxies)).toBe("203.0.113.9");
  expect(clientAddress("::1", "203.0.113.9", proxies)).toBe("203.0.113.9");
  expect(clientAddress("10.0.0.1", "10.0.0.3", proxies)).toBe("10.0.0.3");
  expect(clientAddress("10.0.0.1", null, proxies)).toBe("10.0.0.1");
  expect(clientAddress("10.0.0.1", "203.0.113.9, nonsense", proxies)).toBe("10.0.0.1");
});

test("an entry that is no address is named", () => {
  for (const entry of ["nonsense", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/8/9", "::/129"])
    expect(() => createAddressList([entry])).toThrow(entry);
});
