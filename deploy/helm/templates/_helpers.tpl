{{- define "assay.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "assay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* "true" if the pod stores something in a volume. */}}
{{- define "assay.hasVolume" -}}
{{- if or (not .Values.database.existingSecret) (not .Values.attachments.s3) }}true{{ end }}
{{- end }}

{{- /* Stops with what a person has to do. */}}
{{- define "assay.check" -}}
{{- if not .Values.publicUrl }}
{{- fail "publicUrl is missing: set the address under which browsers and CI reach the server" }}
{{- end }}
{{- if not .Values.secretKey.existingSecret }}
{{- fail (printf "secretKey.existingSecret is missing: create it with kubectl --namespace %s create secret generic assay --from-literal=%s=\"$(openssl rand -base64 32)\", and keep a copy of the key" .Release.Namespace .Values.secretKey.key) }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (include "assay.hasVolume" .) }}
{{- fail "replicas: several servers need database.existingSecret and attachments.s3, because a volume belongs to one of them" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.host is missing: set the host name of publicUrl" }}
{{- end }}
{{- end }}
