package runtime

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const hidden = "***"

// ForViewers returns the spec for someone who may only read: no http_request body, header values that do
// not describe it, or parts of the URL that may be secret; in a shell task no values of variables (rule
// SE6).
func ForViewers(spec SpecForm) SpecForm {
	if len(spec.Payload) == 0 {
		return spec
	}
	var payload map[string]json.RawMessage
	if json.Unmarshal(spec.Payload, &payload) != nil {
		return spec
	}
	switch spec.Type {
	case "http_request":
		hideValues(payload, "headers")
		if _, has := payload["body"]; has {
			payload["body"] = quoted(hidden)
		}
		var text string
		if json.Unmarshal(payload["url"], &text) == nil {
			payload["url"] = quoted(withoutSecrets(text))
		}
	case "shell":
		hideValues(payload, "env")
	default:
		return spec
	}
	masked, err := json.Marshal(payload)
	if err != nil {
		masked = quoted(hidden)
	}
	spec.Payload = masked
	return spec
}
func hideValues(payload map[string]json.RawMessage, key string) {
	var values map[string]json.RawMessage
	if _, has := payload[key]; !has || json.Unmarshal(payload[key], &values) != nil {
		if has {
			payload[key] = quoted(hidden)
		}
		return
	}
	for name := range values {
		if !slices.Contains([]string{"accept", "content-type"}, strings.ToLower(name)) {
			values[name] = quoted(hidden)
		}
	}
	if text, err := json.Marshal(values); err == nil {
		payload[key] = text
	}
}

func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	return u.String()
}

func quoted(text string) json.RawMessage {
	b, _ := json.Marshal(text) //nolint:errcheck,errchkjson // of a text
	return b
}
