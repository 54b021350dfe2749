import { describe, expect, test } from "bun:test";
import { ConfigError, readConfig } from "../src/config.ts";

test("nothing set is a server on 8080 of this machine with the built-in PostgreSQL", () => {
  expect(readConfig({})).toMatchObject({
    port: 8080,
    host: "127.0.0.1",
    databaseUrl: undefined,
    dataDir: `${process.cwd()}/data`,
    publicUrl: undefined,
    rateLimitPerMinute: 60,
    maxBodyBytes: 33_554_432,
    maxInflatedBytes: 134_217_728,
    uploadMemoryBytes: 536_870_912,
    logLevel: "info",
  });
});

test("a variable set to nothing is not set", () => {
  expect(readConfig({ PORT: "", DATABASE_URL: " ", RATE_LIMIT_PER_MINUTE: "0" })).toMatchObject({
    port: 8080,
    databaseUrl: undefined,
    rateLimitPerMinute: 0,
  });
});

test("every mistake is named at once, and a password is not repeated", () => {
  const wrong = {
    PORT: "80a",
    LOG_LEVEL: "loud",
    DATABASE_URL: "mysql://u:secret@h/d",
    PUBLIC_URL: "assay.example",
    TRUST_PROXY: "10.0.0.0/99",
    OUTBOUND_ALLOW: "everywhere",
    OUTBOUND_PROXY: "socks5://u:secret@h:1080",
    MAX_BODY_MB: "0",
    UPLOAD_MEMORY_MB: "half",
    METRICS_TOKEN: "a secret",
  };
  try {
    readConfig(wrong);
    throw new Error("it did not fail");
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const { message } = error as Error;
    for (const name of Object.keys(wrong)) expect(message).toContain(name);
    expect(message.split("\n")).toHaveLength(Object.keys(wrong).length);
    expect(message).not.toContain("secret");
  }
});

test("origins of CORS_ORIGINS are exact ones, as browsers send them", () => {
  expect(readConfig({}).corsOrigins).toEqual([]);
  const given = "https://app.example.com, http://localhost:3000";
  expect(readConfig({ CORS_ORIGINS: given }).corsOrigins).toEqual(given.split(", "));
  for (const wrong of [
    "*",
    "null",
    "app.example.com",
    "https://app.example.com/",
    "https://*.example.com",
    "https://APP.example.com",
  ])
    expect(() => readConfig({ CORS_ORIGINS: `https://app.example.com,${wrong}` })).toThrow(
      "Cannot read CORS_ORIGINS: expected origins",
    );
});

test("variables whose names are near to known ones are named, and no others", () => {
  const named = {
    RETENTION_DAY: "365",
    ASSAY_RETENTION_DAYS: "365",
    DatabaseUrl: "x",

    LOGLEVEL: "x",
  };
  const others = { HOSTNAME: "x", HOSTS: "x", PATH: "x", DATABASE_POOL: "8", ASSAY_PUBLIC_URL: "x", PGUSER: "x" };
  expect(readConfig({ ...named, ...others }).misspelt).toEqual([
    { name: "RETENTION_DAY", meant: "RETENTION_DAYS" },
    { name: "ASSAY_RETENTION_DAYS", meant: "RETENTION_DAYS" },
    { name: "DatabaseUrl", meant: "DATABASE_URL" },
    { name: "LOGLEVEL", meant: "LOG_LEVEL" },
  ]);
});

describe("attachments", () => {
  const S3 = { ATTACHMENTS_S3: "s3://acme/assay/files/", AWS_ACCESS_KEY_ID: "id", S3_SECRET_ACCESS_KEY: "hunter2" };

  test("are files below DATA_DIR", () => {
    expect(readConfig({ DATA_DIR: "/srv/assay" }).attachments).toEqual({
      directory: "/srv/assay/attachments",
      s3: undefined,
      limits: {
        maxBytes: 50 * 1_048_576,
        maxExecutionBytes: 1_024 * 1_048_576,
        maxProjectBytes: 102_400 * 1_048_576,
        maxFiles: 200,
      },
      retentionDays: 30,
    });
  });

  test("or objects of a bucket, with variables that begin with S3 or AWS", () => {
    const given = {
      ...S3,
      S3_ENDPOINT: "http://127.0.0.1:9000",
      AWS_REGION: "eu-central-1",
      ATTACHMENTS_PRESIGN: "true",
    };
    expect(readConfig(given).attachments.s3).toEqual({
      bucket: "acme",
      prefix: "assay/files",
      endpoint: "http://127.0.0.1:9000",
      region: "eu-central-1",
      accessKeyId: "id",
      secretAccessKey: "hunter2",
      sessionToken: undefined,
      presign: true,
    });
    expect(readConfig({ ...S3, ATTACHMENTS_S3: "s3://acme" }).attachments.s3).toMatchObject({
      bucket: "acme",
      prefix: "",
    });
  });

  test.each([
    [{ ...S3, ATTACHMENTS_S3: "https://acme.s3.example" }, "ATTACHMENTS_S3"],
    [{ ...S3, ATTACHMENTS_S3: "s3://A" }, "ATTACHMENTS_S3"],
    [{ ...S3, S3_SECRET_ACCESS_KEY: "" }, "S3_SECRET_ACCESS_KEY"],
    [{ ...S3, S3_ENDPOINT: "minio:9000" }, "S3_ENDPOINT"],
    [{ ...S3, ATTACHMENTS_PRESIGN: "yes" }, "ATTACHMENTS_PRESIGN"],
    [{ ATTACHMENTS_PRESIGN: "true" }, "ATTACHMENTS_S3 is missing"],
    [{ MAX_ATTACHMENT_MB: "0" }, "MAX_ATTACHMENT_MB"],
  ])("of %p are refused", (given, named) => {
    expect(() => readConfig(given)).toThrow(named);
    expect(() => readConfig(given)).not.toThrow("hunter2");
  });
});

test("METRICS_TOKEN is a word, or none", () => {
  expect(readConfig({ METRICS_TOKEN: "" }).metricsToken).toBeUndefined();
  expect(readConfig({ METRICS_TOKEN: " k9/x+=.~ " }).metricsToken).toBe("k9/x+=.~");
});

test("UPLOAD_MEMORY_MB is enough for the report that is read, and for one that waits", () => {
  expect(readConfig({}).uploadMemoryBytes).toBe(512 * 1_048_576);
  expect(readConfig({ MAX_INFLATED_MB: "200" }).uploadMemoryBytes).toBe(632 * 1_048_576);
  expect(readConfig({ UPLOAD_MEMORY_MB: "416" }).uploadMemoryBytes).toBe(416 * 1_048_576);
  expect(() => readConfig({ UPLOAD_MEMORY_MB: "415" })).toThrow("UPLOAD_MEMORY_MB: expected an integer from 416 to");
});

test("PUBLIC_URL loses its trailing slash", () => {
  expect(readConfig({ PUBLIC_URL: "https://assay.example/ci/" }).publicUrl).toBe("https://assay.example/ci");
});

test("OUTBOUND_PROXY is where a proxy listens, perhaps with user and password, which are not repeated", () => {
  expect(readConfig({ HTTP_PROXY: "http://h:1", https_proxy: "http://h:1" }).outboundProxy).toBeUndefined();
  for (const proxy of ["http://10.0.0.1:3128", "https://user:p%40ss@proxy.example", "http://[::1]:8080/"])
    expect(readConfig({ OUTBOUND_PROXY: ` ${proxy} ` }).outboundProxy).toBe(proxy);
  for (const wrong of [
    ...["proxy.example:3128", "ftp://u:hunter2@h", "http://", "http://u:hunter2@h:99999", "http://u:hunter2@h/path"],
    ...["http://u:hunter2@h?x", "http://u:hunter2@h#x", "http://u:hunter2@h h", "http://u:hunter2%zz@h"],
  ]) {
    const read = () => readConfig({ OUTBOUND_PROXY: wrong });
    expect(read).toThrow("Cannot read OUTBOUND_PROXY: expected http://host:port");
    expect(read).not.toThrow("hunter2");
  }
});

test("SECRET_KEY is 32 bytes in base64, and a wrong one is not repeated", () => {
  const key = Buffer.alloc(32, 5).toString("base64");
  expect(Buffer.from(readConfig({ SECRET_KEY: key }).secretKey!)).toEqual(Buffer.alloc(32, 5));
  expect(readConfig({}).secretKey).toBeUndefined();
  for (const wrong of ["hunter2", `${key}AAAA`, key.replace("B", "*"), Buffer.alloc(31).toString("base64")]) {
    const read = () => readConfig({ SECRET_KEY: wrong, SECRET_KEY_OLD: wrong });
    expect(read).toThrow(/SECRET_KEY: expected 32 bytes[^]*SECRET_KEY_OLD: expected 32 bytes/);
    expect(read).not.toThrow(wrong);
  }
  expect(() => readConfig({ SECRET_KEY: key, SECRET_KEY_FILE: "x" })).toThrow("SECRET_KEY is set as well");
  expect(() => readConfig({ SECRET_KEY_FILE: "/nowhere" })).toThrow("SECRET_KEY_FILE");
});

describe("OpenID Connect", () => {
  const provider = {
    OIDC_ISSUER: "https://id.example/realms/a",
    OIDC_CLIENT_ID: "assay",
    OIDC_CLIENT_SECRET: "hunter2",
  };

  test("is a provider with the client's name and secret, and perhaps domains that are let in", () => {
    expect(readConfig({})).toMatchObject({ oidc: undefined, passwordLogin: true });
    const more = { OIDC_ALLOWED_DOMAINS: "Acme.example, dev.acme.example", PASSWORD_LOGIN: "false" };
    expect(readConfig({ ...provider, ...more })).toMatchObject({
      oidc: {
        issuer: "https://id.example/realms/a",
        clientId: "assay",
        clientSecret: "hunter2",
        allowedDomains: ["acme.example", "dev.acme.example"],
      },
      passwordLogin: false,
    });
    for (const issuer of ["http://localhost:3000", "http://127.0.0.1:3000/a", "http://[::1]:1"])
      expect(readConfig({ ...provider, OIDC_ISSUER: issuer }).oidc?.issuer).toBe(issuer);
  });

  test.each<[environment: Record<string, string>, message: string]>([
    [{ OIDC_ISSUER: "https://id.example" }, "OIDC_CLIENT_ID and OIDC_CLIENT_SECRET missing"],
    [{ OIDC_ALLOWED_DOMAINS: "acme.example" }, "OIDC_ISSUER and OIDC_CLIENT_ID and OIDC_CLIENT_SECRET missing"],
    [{ ...provider, OIDC_ISSUER: "http://id.example" }, "Cannot read OIDC_ISSUER: expected an https address"],
    [{ ...provider, OIDC_ISSUER: "http://localhost.evil.example" }, "OIDC_ISSUER"],
    [{ ...provider, OIDC_ISSUER: "https://id.example?x" }, "OIDC_ISSUER"],
    [{ ...provider, OIDC_ALLOWED_DOMAINS: "*" }, "OIDC_ALLOWED_DOMAINS"],
    [{ ...provider, OIDC_ALLOWED_DOMAINS: "@acme.example" }, "OIDC_ALLOWED_DOMAINS"],
    [{ ...provider, PASSWORD_LOGIN: "no" }, "PASSWORD_LOGIN"],
    [{ PASSWORD_LOGIN: "false" }, "without OIDC_ISSUER nobody could sign in"],
  ])("%p is refused", (environment, message) => {
    const read = () => readConfig(environment);
    expect(read).toThrow(message);
    expect(read).not.toThrow("hunter2");
  });
});
