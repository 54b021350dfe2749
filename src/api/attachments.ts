/** Attachments of test runs: the upload of one, the list, and their content. */

import { StoreAwayError } from "../attachments/content.ts";
import { noRoomInProject, summarize, toMaxSize, tooLarge, unkept, withoutPath } from "../attachments/refusals.ts";
import type { SpooledFile } from "../attachments/spool.ts";
import { absent, fail } from "../http/problem.ts";
import { attachFiles, planFiles } from "../operations/attachments/attach.ts";
import { toName } from "../operations/attachments/collect.ts";
import { removeReleased, storeContents } from "../operations/attachments/contents.ts";
import { toAttachment } from "../operations/attachments/read.ts";
import type { ReceivedAttachments } from "../request/attachment_parts.ts";
import { fileReply } from "../request/file_reply.ts";
import { toPage } from "../request/page.ts";
import { json } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { attachmentName, normalizeAttachmentPath } from "../rules/attachment_path.ts";
import {
  attachmentPage,
  attachmentQuery,
  newAttachment,
  newAttachments,
  uploadedAttachment,
  uploadedAttachments,
} from "../schema/attachments.ts";
import {
  addRunWarnings,
  selectAttachment,
  selectAttachments,
  selectAttachmentsByIds,
  selectTargets,
} from "../store/attachments.ts";
import { selectHadLease, selectLease } from "../store/leases.ts";
import { selectRunId } from "../store/test_runs.ts";

type OfRun = Pick<Context<{ projectId: string; executionId: string; taskSlug: string }>, "sql" | "params">;

const findRun = async ({ sql, params }: OfRun): Promise<string> =>
  (await selectRunId(sql, params.projectId, params.executionId, params.taskSlug)) ?? absent();

type Uploaded = OfRun & Pick<Context, "caller"> & { query: { lease_id?: string | undefined } };

/** A runner's own key reaches the runs of its leases and nothing else. */
async function findRunForUpload(context: Uploaded): Promise<string> {
  const { sql, params, caller, query } = context;
  const runId = await findRun(context);
  if (caller.scope === "runner" && !(await selectHadLease(sql, params.projectId, runId, caller.name!))) absent();
  if (query.lease_id !== undefined) {
    const lease = await selectLease(sql, params.projectId, query.lease_id);
    if (lease?.runId !== runId) fail("VALIDATION_ERROR", `Cannot read "lease_id": it is not a lease of this test run`);
    if (caller.scope === "runner" && lease.runner !== caller.name)
      fail("VALIDATION_ERROR", `Cannot read "lease_id": it is the lease of another runner`);
  }
  return runId;
}

const UNKEPT = "Only test cases that passed refer to it: upload the report with attachments=all to keep such files";

const storeIsAway = (): never =>
  fail("INTERNAL_ERROR", "The store of attachments is not available, try again in a moment", { "Retry-After": "10" });

type Put = OfRun & Pick<Context, "services" | "transact" | "publicUrl">;

/** Says on the run that a file is missing from it, and refuses the file. */
async function refuseFile({ params, transact }: Put, runId: string, warning: string, message: string): Promise<never> {
  await transact((sql) => addRunWarnings(sql, params.projectId, runId, [warning]));
  return fail("VALIDATION_ERROR", message);
}

async function putFile(context: Put, runId: string, path: string, name: string, file: SpooledFile) {
  const { sql, params, services, transact, publicUrl } = context;
  const { projectId, executionId } = params;
  const [target] = await selectTargets(sql, projectId, runId, [path], undefined);
  if (!target!.isKept) return json(200, { attachment: null, reason: UNKEPT });
  const { limits } = services.attachments;
  const run = { id: runId, executionId };
  const named = [{ ...file, path, name }];
  const refused = (await planFiles(sql, projectId, run, named, { limits, upload: undefined })).warnings[0];
  if (refused !== undefined) await refuseFile(context, runId, refused, refused);
  const contents = await storeContents(sql, services.attachments, projectId, [file]);
  const { failed, error, withoutRoom, added: stored } = contents;
  if (withoutRoom.size > 0) {
    const warning = noRoomInProject(path, limits.maxProjectBytes);
    await refuseFile(context, runId, warning, warning);
  }
  if (failed.size > 0) {
    services.log.error("Cannot store an attachment", { projectId, executionId, error });
    storeIsAway();
  }
  const { ids, added, warnings, released } = await transact((sql) =>
    attachFiles(sql, projectId, run, named, { limits, upload: undefined, stored }),
  );
  await removeReleased(services, services.attachments, projectId, released);
  const [warning] = warnings;
  if (warning !== undefined) await refuseFile(context, runId, warning, warning);
  const row = (await selectAttachment(sql, projectId, ids[0]!)) ?? absent();
  return json(added ? 201 : 200, { attachment: toAttachment(publicUrl, projectId, row), reason: null });
}

async function putFiles(context: Put, runId: string, { files: received, warnings: refused }: ReceivedAttachments) {
  const { sql, params, services, transact, publicUrl } = context;
  const { projectId, executionId } = params;
  const files = received.map((file) => ({ ...file, path: normalizeAttachmentPath(file.path) }));
  const targets = await selectTargets(sql, projectId, runId, [...new Set(files.map(({ path }) => path))], undefined);
  const targetOf = new Map(targets.map((target) => [target.path, target]));
  const { limits } = services.attachments;
  const run = { id: runId, executionId };
  const wanted = files.flatMap((file) => {
    const target = targetOf.get(file.path);
    const name = toName(target?.name ?? attachmentName(file.path));
    return file.path !== "" && target?.isKept ? [{ ...file, name }] : [];
  });
  // Nothing is stored of what will be refused.
  const plan = await planFiles(sql, projectId, run, wanted, { limits, upload: undefined });
  const planned = wanted.filter((_, index) => plan.ids[index] !== undefined);
  const contents = await storeContents(sql, services.attachments, projectId, planned);
  const { failed, error, withoutRoom, added: stored } = contents;
  const kept = planned.filter(({ sha256 }) => !withoutRoom.has(sha256));
  const withoutRoomFor = planned.filter(({ sha256 }) => withoutRoom.has(sha256));
  if (failed.size > 0) {
    services.log.error("Cannot store attachments", { projectId, executionId, error });
    storeIsAway();
  }
  const { ids, added, limited, released } = await transact(async (tx) => {
    const { warnings, ...attached } = await attachFiles(tx, projectId, run, kept, {
      ...{ limits, upload: undefined, stored },
    });
    const roomless = withoutRoomFor.map(({ path }) => noRoomInProject(path, limits.maxProjectBytes));
    const limited = [...refused, ...plan.warnings, ...roomless, ...warnings];
    if (limited.length > 0) await addRunWarnings(tx, projectId, runId, summarize(limited));
    return { ...attached, limited };
  });
  await removeReleased(services, services.attachments, projectId, released);
  const known = ids.filter((id) => id !== undefined);
  const rows = await selectAttachmentsByIds(sql, projectId, [...new Set(known)]);
  const warnings = [
    ...limited,
    ...files.flatMap(({ path }) =>
      path === "" ? [withoutPath(path)] : targetOf.get(path)!.isKept ? [] : [unkept(path)],
    ),
  ];
  return json(added ? 201 : 200, {
    attachments: rows.map((row) => toAttachment(publicUrl, projectId, row)),
    warnings,
  });
}

export const attachments: Route[] = [
  route(
    "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/attachments",
    {
      scope: "upload",
      isForRunners: true,
      summary: "Upload several attachments",
      description:
        'The body is a form with parts named "attachment". The file name of a part is the path that the report uses for the file. ' +
        "Files that exceed a limit are listed in warnings, and the others are stored. Files that are already stored change nothing: " +
        "if all are, the answer is 200",
      query: newAttachments,
      body: "files",
      answer: uploadedAttachments,
      status: 201,
      otherStatus: 200,
      deadlineSeconds: 120,
    },
    async (context) => {
      const runId = await findRunForUpload(context);
      if (context.body.hasFailed) storeIsAway();
      return await putFiles(context, runId, context.body);
    },
  ),

  route(
    "PUT /projects/:projectId/executions/:executionId/test-runs/:taskSlug/attachments",
    {
      scope: "upload",
      isForRunners: true,
      summary: "Upload an attachment",
      description:
        "The body is the file, such as a screenshot, a video, a trace or a log. Assay adds it to the test cases of the last upload that " +
        "name its path. The run must exist: upload the report first, unless the execution was started with this task. A file that is " +
        "already stored changes nothing and is answered 200. The limits are 50 MiB for a file, 200 files for a run, 1 GiB for an " +
        "execution and 100 GiB for a project (MAX_ATTACHMENT_MB, MAX_RUN_ATTACHMENTS, MAX_EXECUTION_ATTACHMENTS_MB and " +
        "MAX_PROJECT_ATTACHMENTS_MB of the server). A file that exceeds a " +
        "limit is answered 400 and adds a warning to the run. You can also send attachments together with the report, as form parts " +
        "named attachment",
      example: { query: { path: "test-results/cart/cart-actual.png" } },
      query: newAttachment,
      body: "file",
      answer: uploadedAttachment,
      status: 201,
      otherStatus: 200,
      deadlineSeconds: 120,
    },
    async (context) => {
      const { body, query, services } = context;
      const runId = await findRunForUpload(context);
      const path = normalizeAttachmentPath(query.path);
      if (path === "") fail("VALIDATION_ERROR", `Cannot read "path": expected the path of a file, got "${query.path}"`);
      if (body.problem === "failed") storeIsAway();
      const { maxBytes } = services.attachments.limits;
      if (!body.file)
        return await refuseFile(
          ...([
            context,
            runId,
            tooLarge(path, maxBytes),
            `Attachment too large: at most ${toMaxSize(maxBytes)}`,
          ] as const),
        );
      return await putFile(context, runId, path, toName(query.name ?? attachmentName(path)), body.file);
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/attachments",
    {
      summary: "The attachments of a test run",
      description: "The attachments in the order in which they arrived.",
      query: attachmentQuery,
      answer: attachmentPage,
    },
    async (context) => {
      const { sql, params, query, page, publicUrl } = context;
      const runId = await findRun(context);
      const rows = await selectAttachments(sql, params.projectId, runId, { limit: query.limit, after: page.after });
      return toPage(
        context,
        rows,
        ({ id }) => [id],
        (row) => toAttachment(publicUrl, params.projectId, row),
      );
    },
  ),

  route(
    "GET /projects/:projectId/attachments/:attachmentId",
    {
      summary: "The content of an attachment",
      description:
        "Returns the file as it was uploaded. Pictures, videos, plain texts and ZIP archives have their content type. All other files, " +
        "including HTML and SVG, are plain text or a download. A Range of bytes is answered with 206. With ATTACHMENTS_PRESIGN, the " +
        "answer is a 307 redirect to a signed address of the S3 bucket that is valid for some minutes",
      answer: null,
      file: "The file",
    },
    async ({ sql, params, services, range }) => {
      const row = (await selectAttachment(sql, params.projectId, params.attachmentId)) ?? absent();
      const onError = (error: unknown) => services.log.error("Cannot read an attachment", { ...params, error });
      try {
        return await fileReply(services.attachments, params.projectId, row, { range, mayRedirect: true, onError });
      } catch (error) {
        if (!(error instanceof StoreAwayError)) throw error;
        onError(error);
        return storeIsAway();
      }
    },
  ),
];
