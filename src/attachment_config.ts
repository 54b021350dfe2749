/** The part of the configuration that says where attachments are stored, and how many. */

import { join } from "node:path";
import type { S3Settings } from "./attachments/s3_store.ts";
import type { AttachmentSettings } from "./attachments/store.ts";

const MEBIBYTE = 1_048_576;

/** Reads variables and collects mistakes. */
type VariableReader = {
  read(name: string): string | undefined;
  integer(name: string, fallback: number, min: number, max: number): number;
  refuse(name: string, expected: string): void;
  addMistake(mistake: string): void;
};

export function readAttachmentSettings(variables: VariableReader, dataDir: string): AttachmentSettings {
  const { integer } = variables;
  return {
    directory: join(dataDir, "attachments"),
    s3: readS3(variables),
    limits: {
      maxBytes: integer("MAX_ATTACHMENT_MB", 50, 1, 1024) * MEBIBYTE,
      maxExecutionBytes: integer("MAX_EXECUTION_ATTACHMENTS_MB", 1024, 1, 102_400) * MEBIBYTE,
      maxProjectBytes: integer("MAX_PROJECT_ATTACHMENTS_MB", 102_400, 0, 100_000_000) * MEBIBYTE,
      maxFiles: integer("MAX_RUN_ATTACHMENTS", 200, 1, 10_000),
    },
    retentionDays: integer("ATTACHMENT_RETENTION_DAYS", 30, 0, 36_500),
  };
}

function readS3({ read, refuse, addMistake }: VariableReader): S3Settings | undefined {
  const presign = read("ATTACHMENTS_PRESIGN") ?? "false";
  if (presign !== "true" && presign !== "false") refuse("ATTACHMENTS_PRESIGN", `"true" or "false"`);
  const location = read("ATTACHMENTS_S3");
  if (location === undefined) {
    if (presign === "true") addMistake("Cannot use ATTACHMENTS_PRESIGN: ATTACHMENTS_S3 is missing");
    return undefined;
  }
  const [, bucket, prefix = ""] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w!.*'()/-]*))?$/.exec(location) ?? [];
  if (bucket === undefined) refuse("ATTACHMENTS_S3", "s3://bucket/prefix");
  const endpoint = read("S3_ENDPOINT") ?? read("AWS_ENDPOINT") ?? read("AWS_ENDPOINT_URL");
  if (endpoint !== undefined && !(/^https?:\/\//.test(endpoint) && URL.canParse(endpoint)))
    refuse("S3_ENDPOINT", "an http or https address");
  const credential = (name: string) => read(`S3_${name}`) ?? read(`AWS_${name}`);
  const [accessKeyId, secretAccessKey] = [credential("ACCESS_KEY_ID"), credential("SECRET_ACCESS_KEY")];
  if (accessKeyId === undefined || secretAccessKey === undefined)
    addMistake("Cannot use ATTACHMENTS_S3: S3_ACCESS_KEY_ID or S3_SECRET_ACCESS_KEY is missing");
  return {
    bucket: bucket ?? "",
    prefix: prefix.replace(/^\/+|\/+$/g, ""),
    endpoint,
    region: credential("REGION"),
    accessKeyId,
    secretAccessKey,
    sessionToken: credential("SESSION_TOKEN"),
    presign: presign === "true",
  };
}
