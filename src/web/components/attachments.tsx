/** Files that explain a failure: pictures, comparisons of pictures, videos, texts, and what can only be downloaded. */

import type { Html, Path } from "../../http/html.ts";
import { stripAnsi } from "../../rules/ansi.ts";
import { attachmentName, findPictureComparisons, type PictureComparison } from "../../rules/attachment_path.ts";
import type { AttachmentRow } from "../../store/attachments.ts";
import { toSize } from "../../wording/numbers.ts";
import { attachmentPath } from "../site/paths.ts";
import { Breakable } from "./text.tsx";

export type ShownAttachment = Pick<AttachmentRow, "id" | "name" | "path" | "mediaType" | "bytes"> & {
  /** The end of a text. */
  preview: string | null;
};

/** Maximum number of attachments of one failure; the task lists all of them. */
const MAX_SHOWN = 20;

/** Texts of more lines scroll, and keys must reach them. */
const MAX_UNSCROLLED_LINES = 12;

type File = ShownAttachment & { href: Path };

/** A report may call every picture "screenshot": what says more is the name of its file. */
const fileNameOf = ({ name, path }: ShownAttachment): string =>
  /\.\w{1,5}$/.test(name) || path.startsWith("embedded/") ? name : attachmentName(path);

const isPicture = ({ mediaType }: ShownAttachment): boolean => mediaType.startsWith("image/");
const isVideo = ({ mediaType }: ShownAttachment): boolean => mediaType.startsWith("video/");
const hasText = ({ preview }: ShownAttachment): boolean => preview !== null && preview.trim() !== "";

const Picture = ({ file, label, alt }: { file: File; label: string; alt: string }): Html => (
  <a class="picture" href={file.href}>
    <img src={file.href} alt={alt} loading="lazy" decoding="async" />
    <span>
      <Breakable text={label} />
    </span>
  </a>
);

/** Without scripts three pictures beside each other; with them expected and actual lie on each other, divided by a slider. */
function Compared({ stem, expected, actual, diff }: PictureComparison<File>): Html {
  return (
    <figure class="comparison">
      <figcaption>
        <Breakable text={stem} />
      </figcaption>
      <div class="compared">
        <Picture file={expected} label="Expected" alt={`${stem}: expected`} />
        <Picture file={actual} label="Actual" alt={`${stem}: actual`} />
      </div>
      <label class="divider">
        <span aria-hidden="true">Actual</span>
        <input
          type="range"
          min="0"
          max="100"
          value="50"
          aria-label={`${stem}: share of the actual picture in percent`}
        />
        <span aria-hidden="true">Expected</span>
      </label>
      {diff ? <Picture file={diff} label="Difference" alt={`${stem}: difference`} /> : null}
    </figure>
  );
}

function Text({ file }: { file: File }): Html {
  const text = stripAnsi(file.preview ?? "").trimEnd();
  const lines = text.split("\n").length;
  const isTall = lines > MAX_UNSCROLLED_LINES;
  return (
    <div class="text-file">
      <p>
        <a href={file.href}>
          <Breakable text={file.name} />
        </a>{" "}
        <span class="soft">{toSize(file.bytes)}</span>
      </p>
      <pre
        tabindex={isTall ? 0 : undefined}
        role={isTall ? "group" : undefined}
        aria-label={isTall ? file.name : undefined}
      >
        {text}
      </pre>
    </div>
  );
}

const isTrace = (file: File): boolean =>
  file.mediaType === "application/zip" && /\btrace\b/i.test(`${file.name} ${fileNameOf(file)}`);

function Download({ file }: { file: File }): Html {
  const fileName = fileNameOf(file);
  return (
    <li>
      <a href={file.href} download={fileName}>
        <Breakable text={fileName} />
      </a>{" "}
      <span class="soft">{toSize(file.bytes)}</span>
      {isTrace(file)
        ? [" ", <span class="soft">· opens with</span>, " ", <code>npx playwright show-trace {fileName}</code>]
        : null}
    </li>
  );
}

/** Shows attachments, or nothing if there are none. */
export function Attachments({
  projectId,
  files: given,
  hasTitle = true,
}: {
  projectId: string;
  hasTitle?: boolean;
  files: readonly ShownAttachment[];
}): Html | null {
  if (given.length === 0) return null;
  const files = given.slice(0, MAX_SHOWN).map((file): File => ({ ...file, href: attachmentPath(projectId, file.id) }));
  const named = files.filter(isPicture).map((file) => ({ name: fileNameOf(file), file }));
  const { comparisons, others: pictures } = findPictureComparisons(named);
  const videos = files.filter(isVideo);
  const texts = files.filter(hasText);
  const downloads = files.filter((file) => !isPicture(file) && !isVideo(file) && !hasText(file));
  return (
    <div class="attachments full-width">
      {hasTitle ? <h3>Attachments</h3> : null}
      {comparisons.map(({ stem, expected, actual, diff }) => (
        <Compared stem={stem} expected={expected.file} actual={actual.file} diff={diff?.file} />
      ))}
      {pictures.length + videos.length === 0 ? null : (
        <div class="pictures">
          {pictures.map(({ file, name }) => (
            <Picture file={file} label={file.name} alt={name} />
          ))}
          {videos.map((file) => (
            <div class="picture">
              <video controls preload="none" src={file.href} aria-label={file.name} />
              <a href={file.href}>
                <Breakable text={file.name} />
              </a>
            </div>
          ))}
        </div>
      )}
      {texts.map((file) => (
        <Text file={file} />
      ))}
      {downloads.length === 0 ? null : (
        <ul class="plain">
          {downloads.map((file) => (
            <Download file={file} />
          ))}
        </ul>
      )}
    </div>
  );
}
