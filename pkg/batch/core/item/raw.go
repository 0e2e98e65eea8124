package item

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// RawText is an unreadable item's text and location.
type RawText struct {
	// Text has no line end, as UTF-8; stored empty if fields are redacted.
	Text string `json:"text"`
	// Offset and Length are in bytes after decompression, as UTF-8. If Length exceeds Text, that is the
	// beginning.
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Columns name the fields; nil if text or configuration do.
	Columns []string `json:"columns,omitempty"`
	// Delimiter if the source defines it.
	Delimiter string `json:"delimiter,omitempty"`
	// Heads are records above it that it takes values from, each TYPE=TEXT.
	Heads []string `json:"heads,omitempty"`
}

// RawReader readers have the text of an unreadable item (rule C12). RawText follows a Read with a
// [ConsumedError]; it is stored unless its Length is 0.
type RawReader interface {
	RawText() RawText
}

// RawOpener readers read an item from its text, in a redrive of corrected texts. OpenRaw replaces Open, again
// for each text: the next Read returns the item, then io.EOF. meta is its origin. [Closer] follows the last.
type RawOpener interface {
	OpenRaw(ctx context.Context, meta Meta, raw RawText) error
}

// Bounded is valid UTF-8 of at most MaxPayloadBytes as JSON. truncated: incomplete, not to be read again; sum
// is the whole's hex SHA-256, if known.
func (t RawText) Bounded() (stored RawText, truncated bool, sum string) {
	quoted, _ := cutText([]byte(t.Text))
	whole := t.Text
	if err := json.Unmarshal(quoted, &t.Text); err != nil {
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

// Hidden has no content.
func (t RawText) Hidden() RawText {
	t.Text, t.Heads = "", nil
	return t
}

// IsHidden reports whether it was left out because fields are redacted.
func (t RawText) IsHidden() bool { return t.Text == "" }

// HidesFields reports whether items have masked fields: then no text may be stored.
func HidesFields(items Items) bool {
	typed, ok := items.(interface{ elem() reflect.Type })
	return !ok || hidesFields(typed.elem())
}

func hidesFields(t reflect.Type) bool { return mayRedact(t, map[reflect.Type]bool{}, false) }

func (s *Slice[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
