package item

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// RawText is the text of an item that could not be read, and where it stands.
type RawText struct {
	// Text is what the source has, without a line end, as UTF-8. It is stored empty where
	// the item's type has fields that are redacted.
	Text string `json:"text"`
	// Offset and Length are the bytes of the text in the source, after decompression, as
	// UTF-8: in a plain UTF-8 file those of the file. Where Length is more than Text has,
	// Text is the beginning.
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Columns name the fields of the text; nil where the text names them itself, or the
	// configuration of the reader does.
	Columns []string `json:"columns,omitempty"`
	// Delimiter is the text between fields where the source says it itself.
	Delimiter string `json:"delimiter,omitempty"`
	// Heads are the records above it from which the item takes values, each as TYPE=TEXT: the headers
	// of a file with several record types.
	Heads []string `json:"heads,omitempty"`
}

// RawReader is implemented by readers that have the text of an item that they could not
// read (rule C12). RawText is asked right after a Read that failed with a
// [ConsumedError]; the answer is stored with the skip, unless its Length is 0: there is
// no text.
type RawReader interface {
	RawText() RawText
}

// RawOpener is implemented by readers that read an item from its text alone: a redrive
// hands them the text that a person corrected. OpenRaw is called instead of Open, and
// again for each text: the next Read returns the item of the text, and the one after it
// io.EOF. meta is where the item came from. Closer is called after the last text.
type RawOpener interface {
	OpenRaw(ctx context.Context, meta Meta, raw RawText) error
}

// Bounded returns what is stored of the text: valid UTF-8 of at most MaxPayloadBytes as
// JSON. truncated says that it is not the whole text, and cannot be read again as it is;
// sum is then the hex SHA-256 of the whole, where that is known.
func (t RawText) Bounded() (stored RawText, truncated bool, sum string) {
	quoted, _ := cutText([]byte(t.Text))
	whole := t.Text
	if err := json.Unmarshal(quoted, &t.Text); err != nil { // cannot be: cutText made it
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

// Hidden returns the text without what it says.
func (t RawText) Hidden() RawText {
	t.Text, t.Heads = "", nil
	return t
}

// IsHidden reports whether the text was left out because fields of the item are redacted.
func (t RawText) IsHidden() bool { return t.Text == "" }

// HidesFields reports whether items of the buffer have fields that are stored masked:
// then no text of such an item may be stored, as it is not known where the field is in it.
func HidesFields(items Items) bool {
	typed, ok := items.(interface{ elem() reflect.Type })
	return !ok || hidesFields(typed.elem())
}

func hidesFields(t reflect.Type) bool { return mayRedact(t, map[reflect.Type]bool{}, false) }

// elem returns the type of the items.
func (s *Slice[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
