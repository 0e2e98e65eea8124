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

// jsonFormat refuses a body that encoding/json would change silently: two
// different requests could become the same (rule AP2).
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
	// Only compared with the schema: numbers used later keep their digits, in a
	// json.RawMessage (rule D10).
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(anything); err != nil {
		return err
	}
	*anything = withFloats(*anything)
	return nil
}

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

// Its case does not matter (RFC 9110); that of its parameters is kept.
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
