/** The pages and forms of automations: list, form, JSON, dry runs and the history of runs. */

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
