/** The table of the variables of an environment, and the forms that set them. */

import type { Html, Path } from "../../../http/html.ts";
import type { Role } from "../../../schema/accounts.ts";
import type { Variable } from "../../../schema/environments.ts";
import { CardTable } from "../../components/list.tsx";
import { Checkbox, Danger, Field, FormError, Form, field } from "../../components/form.tsx";
import { Tag } from "../../components/status.tsx";
import { Breakable, toExact } from "../../components/text.tsx";

/** `isSealed` marks a value that cannot be decrypted. */
export type ShownVariable = Variable & { isSealed?: true };

/** The entered values of a refused form. A refused secret is not sent back. */
export type EnteredVariable = { name: string; value: string; secret: boolean };

export function variableTable(base: Path, csrf: string, role: Role, variables: readonly ShownVariable[]): Html {
  return (
    <CardTable caption="Variables" columns={["Name", "Value", role === "owner" && ["Change", "hidden"]]}>
      {variables.map(({ name, secret, value, updatedAt, isSealed }) => (
        <tr>
          <th scope="row" class="long ink">
            <code>
              <Breakable text={name} />
            </code>
          </th>
          <td class="long">
            {isSealed ? (
              <span class="failed">cannot be decrypted; set it again</span>
            ) : secret ? (
              <Tag>secret</Tag>
            ) : (
              <code class="lines">{value === "" ? <span class="soft">empty</span> : value}</code>
            )}{" "}
            <span class="small soft">set on {toExact(updatedAt)}</span>
          </td>
          {role === "owner" ? (
            <td class="number">
              <Danger
                action={`${base}/variables/${name}/delete`}
                csrf={csrf}
                label={["Delete", <span class="visually-hidden"> {name}</span>]}
                loss={secret ? "The value cannot be recovered." : "New executions do not receive it."}
              />
            </td>
          ) : null}
        </tr>
      ))}
    </CardTable>
  );
}

type FormProperties = { base: Path; csrf: string; problem: string | undefined };

export const VariableForm = ({
  base,
  csrf,
  problem,
  entered,
}: FormProperties & { entered: EnteredVariable | undefined }): Html => (
  <Form to={`${base}/variables`} csrf={csrf} button="Save variable">
    <h3>Add or change a variable</h3>
    <FormError message={problem} />
    {field(entered, "name", "Name", {
      id: "variable-name",
      required: true,
      max: 128,
      isCode: true,
      placeholder: "DATABASE_URL",
    })}
    <Field label="Value" name="value" value={entered?.secret ? "" : entered?.value} type="area" rows={3} isCode />
    <Checkbox label="Secret: the value cannot be viewed again" name="secret" checked={entered?.secret ?? true} />
  </Form>
);

export const PasteForm = ({ base, csrf, problem }: FormProperties): Html => (
  <Form to={`${base}/variables/paste`} csrf={csrf} button="Save variables" buttonKind="">
    <h3>Paste a .env file</h3>
    <FormError message={problem} />
    <Field
      label="Lines of NAME=value"
      name="text"
      type="area"
      rows={6}
      required
      isCode
      placeholder={"API_TOKEN=…\nBROWSER=firefox"}
    />
    <Checkbox label="All are secrets" name="secret" checked />
    <Checkbox label="Delete variables that are not in the file" name="replace" checked={false} />
  </Form>
);
