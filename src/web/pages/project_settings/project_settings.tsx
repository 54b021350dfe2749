/** The pages and forms of the settings of a project. */

import type { Page } from "../../site/page.ts";
import { deletionForm, deletionPage } from "./deletion.tsx";
import { keyForm, keyPage } from "./key.tsx";
import { changeForm, settingsPage } from "./settings.tsx";

export const projectSettings: Page[] = [settingsPage, changeForm, keyPage, keyForm, deletionPage, deletionForm];
