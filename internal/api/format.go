package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/jsontext"
)

// jsonFormat is JSON in which each text has one meaning (rule AP2): a body that encoding/json would
// change silently is refused, because two different requests could become the same.
func jsonFormat() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readJSON}
}

func readJSON(text []byte, into any) error {
	if err := new(jsontext.Scanner).Valid(text); err != nil {
		return err
	}
	anything, is := into.(*any)
	if !is {
		return json.Unmarshal(text, into)
	}
	// This value is only compared with the schema. The digits of a number are kept where they are
	// used, in a json.RawMessage, and may exceed a float (rule D10).
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(anything); err != nil {
		return err
	}
	*anything = withFloats(*anything)
	return nil
}

// withFloats replaces each number by the nearest float, which the schema compares.
func withFloats(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil { // beyond the largest float
			f = math.Copysign(math.MaxFloat64, f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = withFloats(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withFloats(v[key])
		}
	}
	return v
}

// lowerMediaType writes the media type of the body as operations have it: its case does not matter
// (RFC 9110). The case of its parameters is kept.
func lowerMediaType(h http.Header) {
	media, parameters, has := strings.Cut(h.Get("Content-Type"), ";")
	if media = strings.ToLower(strings.TrimSpace(media)); media == "" {
		return
	}
	if has {
		media += ";" + parameters
	}
	h.Set("Content-Type", media)
}
