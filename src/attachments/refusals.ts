/** Messages for uploaders about attachments that are not stored. */

const MAX_SHOWN_PATH = 200;

const named = (path: string): string => `Attachment ${JSON.stringify(path.slice(0, MAX_SHOWN_PATH))} was not stored`;

const toMebibytes = (bytes: number): string => `${Number((bytes / 1_048_576).toPrecision(3))} MiB`;

/** Returns the maximum size of an attachment, with the variable that sets it. */
export const toMaxSize = (maxBytes: number): string => `${toMebibytes(maxBytes)} (MAX_ATTACHMENT_MB of the server)`;

export const tooLarge = (path: string, maxBytes: number): string =>
  `${named(path)}: larger than ${toMaxSize(maxBytes)}`;

export const storeAway = (path: string): string => `${named(path)}: the store of attachments is not available`;

export const tooManyFiles = (path: string, maxFiles: number): string =>
  `${named(path)}: the run has ${maxFiles} attachments, and more are not stored (MAX_RUN_ATTACHMENTS of the server)`;

export const tooManyBytes = (path: string, maxBytes: number): string =>
  `${named(path)}: the attachments of one execution may take ${toMebibytes(maxBytes)} (MAX_EXECUTION_ATTACHMENTS_MB of the server)`;

export const noRoomInProject = (path: string, maxBytes: number): string =>
  `${named(path)}: the attachments of one project may take ${toMebibytes(maxBytes)} (MAX_PROJECT_ATTACHMENTS_MB of the server)`;

export const unkept = (path: string): string =>
  `${named(path)}: only test cases that passed refer to it (upload the report with attachments=all to keep such files)`;

export const withoutPath = (path: string): string => `${named(path)}: expected the path of a file`;

/** Every file would be a warning of its own. */
export function summarize(warnings: readonly string[], max = 10): string[] {
  const rest = warnings.length - max;
  return rest <= 0 ? [...warnings] : [...warnings.slice(0, max), `${rest} more attachments were not stored`];
}
