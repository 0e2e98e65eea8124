package row

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jsontext"
)

// JSON is one value's text without blanks (rule D12). Compare with Equal.
type JSON string

// ParseJSON is as strict as rule D9.
func ParseJSON(text string) (JSON, error) {
	var scan jsontext.Scanner
	doc := []byte(text)
	if err := scan.Valid(doc); err != nil {
		var syntax *jsontext.SyntaxError
		if errors.As(err, &syntax) {
			return "", fmt.Errorf("%w (byte %d)", err, syntax.Offset+1)
		}
		return "", err
	}
	return CompactJSON(doc), nil
}

// CompactJSON takes valid JSON.
func CompactJSON(doc []byte) JSON {
	at := blankOutside(doc, 0)
	if at == len(doc) {
		return JSON(doc)
	}
	kept := make([]byte, 0, len(doc))
	for from := 0; from < len(doc); {
		kept = append(kept, doc[from:at]...)
		for at < len(doc) && jsontext.IsBlank(doc[at]) {
			at++
		}
		from, at = at, blankOutside(doc, at)
	}
	return JSON(kept)
}

// i is outside strings.
func blankOutside(doc []byte, i int) int {
	for ; i < len(doc); i++ {
		switch {
		case jsontext.IsBlank(doc[i]):
			return i
		case doc[i] == '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		}
	}
	return len(doc)
}

// Equal is as PostgreSQL's jsonb: order of keys and notation of numbers do not count.
func (j JSON) Equal(k JSON) bool { return j == k || j.Canonical() == k.Canonical() }

// Canonical orders keys and drops trailing zeros; other text stays.
func (j JSON) Canonical() JSON {
	d := json.NewDecoder(strings.NewReader(string(j)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return j
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(plainest(value)); err != nil {
		return j
	}
	return JSON(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// MarshalJSON writes the value; zero is null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON keeps the value; null changes nothing.
func (j *JSON) UnmarshalJSON(doc []byte) error {
	if !isJSONNull(string(doc)) {
		*j = CompactJSON(doc)
	}
	return nil
}

func plainest(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = plainest(member)
		}
	case []any:
		for i, element := range v {
			v[i] = plainest(element)
		}
	case json.Number:
		if d, err := ParseDecimal(v.String()); err == nil {
			return json.Number(d.Reduce().String())
		}
	}
	return value
}

// No value, like a database's null.
func isJSONNull(text string) bool {
	return len(text) >= len("null") && strings.TrimSpace(text) == "null"
}
