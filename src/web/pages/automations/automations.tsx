/** Automations of a team: what they do in a sentence, set by a form or as JSON, tried out, and what each run did. */

import type { Page } from "../../site/page.ts";
import { automationPage, changeForm, deleteForm, runForm, stateForm } from "./automation.tsx";
import { createAutomationForm, newPage } from "./edit.tsx";
import { listPage } from "./list.tsx";

export const automations: Page[] = [
  listPage,
  newPage,
  createAutomationForm,
  automationPage,
  changeForm,
  stateForm,
  deleteForm,
  runForm,
];
