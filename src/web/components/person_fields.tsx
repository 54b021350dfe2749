/** The fields of forms about people, and the link to the identity provider. */

import type { Html } from "../../http/html.ts";
import type { PageServices } from "../site/page.ts";
import { Field } from "./form.tsx";

export const EmailField = ({ value }: { value?: string | undefined }): Html => (
  <Field name="email" label="E-mail address" type="email" value={value} autocomplete="username" required />
);

export const NameField = ({ value }: { value?: string | undefined }): Html => (
  <Field name="name" label="Your name" value={value} autocomplete="name" required />
);

export const NewPasswordField = ({ label = "Password" }: { label?: string }): Html => (
  <Field
    name="password"
    label={label}
    type="password"
    autocomplete="new-password"
    hint="At least 10 characters. A few unrelated words are good."
    required
  />
);

/** A link instead of a form, because the content security policy restricts redirects of a form to the page's own host. */
export function providerLink(
  { signIn }: Pick<PageServices, "signIn">,
  values: { next?: string; invitation?: string; setup?: string },
): Html | null {
  if (!signIn.oidc) return null;
  const { host } = signIn.oidc;
  return (
    <p class="actions">
      <a
        class={signIn.policy.passwordLogin ? "button" : "button main"}
        href={`/login/oidc?${new URLSearchParams(values).toString()}`}
      >
        Continue with {host}
      </a>
    </p>
  );
}
