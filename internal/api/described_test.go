package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
)

type described struct {
	method, path string
	address      *regexp.Regexp
	parameters   []string // of the query
	answer       *jsonschema.Schema
	problem      *jsonschema.Schema
}

var operations = sync.OnceValues(readOperations)

func readOperations() ([]described, error) {
	text, err := api.Document()
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		return nil, err
	}
	part := regexp.MustCompile(`\{[^}]+\}`)
	var list []described
	for path, methods := range document.(map[string]any)["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			d := described{method: strings.ToUpper(method), path: path, address: regexp.MustCompile("^" + part.ReplaceAllString(path, "[^/]+") + "$")}
			if path == "/v1/stream" { // it has no end
				continue
			}
			at := fmt.Sprintf("openapi.json#/paths/%s/%s/responses/", strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace(path), method)
			if d.answer, err = compiler.Compile(at + "200/content/application~1json/schema"); err != nil {
				return nil, err
			}
			if d.problem, err = compiler.Compile(at + "default/content/application~1problem+json/schema"); err != nil {
				return nil, err
			}
			parameters, _ := operation.(map[string]any)["parameters"].([]any)
			for _, p := range parameters {
				if p := p.(map[string]any); p["in"] == "query" {
					d.parameters = append(d.parameters, p["name"].(string))
				}
			}
			list = append(list, d)
		}
	}
	return list, nil
}

func requireDescribed(t testing.TB, method, path string, status int, text string) {
	t.Helper()
	all, err := operations()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 17)
	for _, d := range all {
		if d.method != method || !d.address.MatchString(path) {
			continue
		}
		schema := d.problem
		if status == http.StatusOK {
			schema = d.answer
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err, text)
		require.NoError(t, schema.Validate(value), "%s %s: %s", method, path, text)
	}
}
