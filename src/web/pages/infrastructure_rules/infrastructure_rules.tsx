/** The pages and forms of infrastructure rules. */

import type { Page } from "../../site/page.ts";
import { createRuleForm, listPage } from "./list.tsx";
import { changeRuleForm, deleteRuleForm, rulePage } from "./rule.tsx";

export const infrastructureRules: Page[] = [listPage, createRuleForm, rulePage, changeRuleForm, deleteRuleForm];
