/** The pages and forms of environments. */

import type { Page } from "../../site/page.ts";
import { changeForm, deleteForm, environmentPage } from "./environment.tsx";
import { createEnvironmentForm, listPage } from "./list.tsx";
import { deleteVariableForm, pasteForm, variableForm } from "./variables.tsx";

export const environments: Page[] = [
  listPage,
  createEnvironmentForm,
  environmentPage,
  changeForm,
  deleteForm,
  variableForm,
  pasteForm,
  deleteVariableForm,
];
