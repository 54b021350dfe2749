// Renders a Helm chart as Helm does: Go templates, the functions of Sprig, and those that Helm adds. Debian packages both:
// golang-go and golang-github-masterminds-sprig-dev. Usage: render_chart CHART RELEASE NAMESPACE < VALUES, with values as JSON.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type object = map[string]interface{}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readYaml(path string) object {
	content, err := os.ReadFile(path)
	check(err)
	value := object{}
	check(yaml.Unmarshal(content, &value))
	return value
}

// Puts the values of a user over those of the chart, object by object.
func merge(under, over object) object {
	for name, value := range over {
		below, isBelow := under[name].(object)
		above, isAbove := value.(object)
		if isBelow && isAbove {
			under[name] = merge(below, above)
		} else {
			under[name] = value
		}
	}
	return under
}

func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	given := object{}
	check(json.NewDecoder(os.Stdin).Decode(&given))
	about := readYaml(filepath.Join(chart, "Chart.yaml"))
	data := object{
		"Values":  merge(readYaml(filepath.Join(chart, "values.yaml")), given),
		"Release": object{"Name": release, "Namespace": namespace, "Service": "Helm"},
		"Chart":   object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
	}

	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		check(err)
		return strings.TrimSuffix(string(text), "\n")
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		check(err)
		_, err = all.New(filepath.Base(path)).Parse(string(content))
		check(err)
	}
	rendered := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		check(all.ExecuteTemplate(&text, name, data))
		// Helm shows nothing for a missing value.
		rendered[name] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	check(json.NewEncoder(os.Stdout).Encode(rendered))
}
