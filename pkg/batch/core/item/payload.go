package item

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// EncodePayload returns the stored JSON of a skipped item (rule C12): a row by its schema, as an object
// with the keys of the source, so that [Type.FromDocuments] reads it again; anything else by
// encoding/json.
//
// A struct field with the tag `redact:"true"`, at any depth, is stored as "***" if it is a text and as
// its zero value otherwise. The item itself is unchanged.
//
// truncated means that the JSON is incomplete, so that it cannot be processed again: something was
// redacted; or it exceeded MaxPayloadBytes, and a JSON string with its beginning is stored, and sum is
// the hex SHA-256 of all of it (redacted); or it has no JSON form, and a JSON string says why. The
// result is always valid JSON of at most MaxPayloadBytes.
func EncodePayload(item any) (text []byte, truncated bool, sum string) {
	text, redacted, err := encodeItem(item)
	if err != nil {
		text, _ = cutText([]byte("no JSON form: " + err.Error()))
		return text, true, ""
	}
	if len(text) <= MaxPayloadBytes {
		return text, redacted, ""
	}
	whole := sha256.Sum256(text)
	text, _ = cutText(text)
	return text, true, hex.EncodeToString(whole[:])
}

// encodeItem never panics: an author's MarshalJSON may.
func encodeItem(item any) (text []byte, redacted bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if r, ok := item.(Row); ok {
		return encodeRow(r), false, nil
	}
	v := reflect.ValueOf(item)
	if v.IsValid() && mayRedact(v.Type(), map[reflect.Type]bool{}, true) {
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		r := &redactor{}
		if err := r.hide(own, 0); err != nil {
			return nil, false, err
		}
		item, redacted = own.Interface(), r.hid
	}
	text, err = json.Marshal(item)
	return text, redacted, err
}

func encodeRow(r Row) []byte {
	text := []byte{'{'}
	for i, v := range r.Values() {
		if i > 0 {
			text = append(text, ',')
		}
		f := r.Schema().Field(i)
		text = append(appendJSONString(text, f.Source()), ':')
		if v.Kind() == row.BytesKind { // also bytes in a bytes column if the field is not declared
			text = appendJSONString(text, row.HexText(v.Bytes()))
			continue
		}
		var err error
		if text, err = appendJSONValue(text, f, v); err != nil { // NaN and infinities
			text = appendJSONString(text, v.String())
		}
	}
	return append(text, '}')
}

// cutText returns text as a JSON string of at most MaxPayloadBytes, cut if necessary.
func cutText(text []byte) (quoted []byte, cut bool) {
	length := min(len(text), MaxPayloadBytes)
	for {
		for length > 0 && length < len(text) && !utf8.RuneStart(text[length]) {
			length--
		}
		quoted = appendJSONString(nil, string(text[:length]))
		if over := len(quoted) - MaxPayloadBytes; over > 0 {
			length -= max(1, over/6) // a byte becomes at most six
			continue
		}
		return quoted, length < len(text)
	}
}
