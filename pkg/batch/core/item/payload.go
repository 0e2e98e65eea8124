package item

import (
	"context"
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

// RawText is the text of an item that could not be read, and its location.
type RawText struct {
	// Text is the source text, without a line end, as UTF-8. It is stored empty if the item's type has
	// redacted fields.
	Text string `json:"text"`
	// Offset and Length locate the text in the source, in bytes, after decompression, as UTF-8: in a
	// plain UTF-8 file the file's bytes. If Length exceeds Text, Text is the beginning.
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Columns name the fields of the text; nil if the text itself or the reader's configuration names
	// them.
	Columns []string `json:"columns,omitempty"`
	// Delimiter is the text between fields if the source itself defines it.
	Delimiter string `json:"delimiter,omitempty"`
	// Heads are the records above it from which the item takes values, each as TYPE=TEXT: the headers
	// of a file with several record types.
	Heads []string `json:"heads,omitempty"`
}

// RawReader is implemented by readers that have the text of an item that they could not read (rule
// C12). RawText is called right after a Read that failed with a [ConsumedError]; the text is stored
// with the skip, unless its Length is 0: there is none.
type RawReader interface {
	RawText() RawText
}

// RawOpener is implemented by readers that can read an item from its text alone: a redrive passes them
// the text that a person corrected. OpenRaw is called instead of Open, and again for each text: the
// next Read returns the item of the text, and the following one io.EOF. meta is the origin of the item.
// Closer is called after the last text.
type RawOpener interface {
	OpenRaw(ctx context.Context, meta Meta, raw RawText) error
}

// Bounded returns the stored form of the text: valid UTF-8 of at most MaxPayloadBytes as JSON.
// truncated means that it is incomplete and cannot be read again; sum is then the hex SHA-256 of the
// whole, if known.
func (t RawText) Bounded() (stored RawText, truncated bool, sum string) {
	quoted, _ := cutText([]byte(t.Text))
	whole := t.Text
	if err := json.Unmarshal(quoted, &t.Text); err != nil { // impossible: cutText made it
		t.Text = ""
	}
	known := int64(len(whole)) >= t.Length
	if known && t.Text == whole {
		return t, false, ""
	}
	if known {
		hash := sha256.Sum256([]byte(whole))
		sum = hex.EncodeToString(hash[:])
	}
	return t, true, sum
}

// Hidden returns the text without its content.
func (t RawText) Hidden() RawText {
	t.Text, t.Heads = "", nil
	return t
}

// IsHidden reports whether the text was left out because fields of the item are redacted.
func (t RawText) IsHidden() bool { return t.Text == "" }

func (s *Slice[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
