/** The pages and forms of the settings of a project. */

import type { Page } from "../../site/page.ts";
import { deletionForm, deletionPage } from "./deletion.tsx";
import { exportPage } from "./export.ts";
import { gateShareForm } from "./gate_share_form.ts";
import { keyForm, keyPage } from "./key.tsx";
import { ownersPage } from "./owners.tsx";
import { changeForm, settingsPage } from "./settings.tsx";

export const projectSettings: Page[] = [
  settingsPage,
  changeForm,
  gateShareForm,
  keyPage,
  keyForm,
  ownersPage,
  exportPage,
  deletionPage,
  deletionForm,
];
