/** My projects: which are green, and what needs me. */

import { html } from "../http/html.ts";
import { page, type Page } from "./page.ts";

export const home: Page[] = [
  page("/", { access: "account" }, async () => ({ title: "Projects", body: html`<h1>Projects</h1>` })),
];
