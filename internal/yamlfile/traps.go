package yamlfile

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// In `{c: round(x, 2)}` the comma ends the value: YAML sees the keys c and "2)". This finds the
// mistake, for a message with the correction.

func cutExpression(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Style == 0 && depth(y.Value) > 0
}

func closes(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Style == 0 && depth(y.Value) < 0
}

func depth(text string) int { return strings.Count(text, "(") - strings.Count(text, ")") }

var sqlVerb = regexp.MustCompile(`(?i)^(select|insert\s+into|update|delete\s+from|with|merge\s+into|create\s+\w+|truncate|replace\s+into)\s`)

func cutAt(content []*yaml.Node, i int) int {
	value := content[i+1]
	if value.Kind != yaml.ScalarNode || value.Style != 0 {
		return 0
	}
	if sqlVerb.MatchString(value.Value) {
		end := i + 2
		for end+1 < len(content) && noValue(content[end], content[end+1]) {
			end += 2
		}
		if end > i+2 {
			return end
		}
	}
	if cutExpression(value) {
		return pieces(content, i+2)
	}
	return 0
}

func noValue(key, value *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && value.Kind == yaml.ScalarNode && value.Tag == "!!null" && value.Value == ""
}

func bracesOf(y *yaml.Node) (inner string, is bool) {
	if y.Kind != yaml.MappingNode || len(y.Content) != 2 || !noValue(y.Content[0], y.Content[1]) {
		return "", false
	}
	return y.Content[0].Value, true
}

func pieces(content []*yaml.Node, from int) int {
	for i := from; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		if !noValue(key, value) {
			return 0
		}
		if closes(key) {
			return i + 2
		}
	}
	return 0
}

func evens(content []*yaml.Node) []*yaml.Node {
	var keys []*yaml.Node
	for i := 0; i < len(content); i += 2 {
		keys = append(keys, content[i])
	}
	return keys
}

func quote(text string) string {
	if strings.Contains(text, "'") && !strings.ContainsAny(text, "\"\\\n") {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
