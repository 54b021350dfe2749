/** An error that is shown to the visitor as a page. */

/** `message` says briefly what is wrong, `hint` what to do about it. */
export class PageError extends Error {
  override name = "PageError";
  readonly status: number;
  readonly hint: string;
  constructor(status: number, message: string, hint: string) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export const noSuchPage = () =>
  new PageError(404, "Page not found", "It may have been deleted, or you may not be a member of its team.");
