package secret

import (
	"encoding/json"
	"slices"
	"strings"
)

const cut = "…"

type masks struct {
	forms  []string // the longest first
	whole  *strings.Replacer
	digits bool
	// begins has the first two bytes of the forms: most texts have no secret, and are read only once.
	begins [1 << 16 / 64]uint64
}

func newMasks(forms []string) *masks {
	var pairs []string
	digits := false
	for _, form := range forms {
		pairs = append(pairs, form, mask)
		digits = digits || strings.Trim(form, "0123456789.-+eE") == ""
	}
	m := &masks{forms: forms, whole: strings.NewReplacer(pairs...), digits: digits}
	for _, form := range forms { // each has at least MinValue bytes
		pair := uint16(form[0])<<8 | uint16(form[1])
		m.begins[pair/64] |= 1 << (pair % 64)
	}
	return m
}

// mayHave reports whether a text has a form, or a piece of one beside a cut.
func (m *masks) mayHave(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		if m.begins[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		if slices.ContainsFunc(m.forms, func(form string) bool { return strings.HasPrefix(text[i:], form) }) {
			return true
		}
	}
	return strings.Contains(text, cut)
}

func (m *masks) Replace(text string) string {
	if !m.mayHave(text) {
		return text
	}
	if m.digits && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text)) {
		return inLiterals(text, m.replace)
	}
	return m.replace(text)
}

func inLiterals(document string, change func(text string) string) string {
	var out strings.Builder
	for {
		begin := strings.IndexByte(document, '"')
		if begin < 0 {
			out.WriteString(document)
			return out.String()
		}
		out.WriteString(document[:begin+1])
		document = document[begin+1:]
		end := 0
		for end < len(document) && document[end] != '"' {
			if document[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(document))
		out.WriteString(change(document[:end]))
		if document = document[end:]; document == "" {
			return out.String()
		}
		out.WriteByte('"')
		document = document[1:]
	}
}

func (m *masks) replace(text string) string {
	text = m.whole.Replace(text)
	if !strings.Contains(text, cut) {
		return text
	}
	pieces := strings.Split(text, cut)
	for i, piece := range pieces {
		if i > 0 {
			if n := m.left(piece, strings.HasPrefix, func(form string, n int) string { return form[len(form)-n:] }); n > 0 {
				piece = mask + piece[n:]
			}
		}
		if i < len(pieces)-1 {
			if n := m.left(piece, strings.HasSuffix, func(form string, n int) string { return form[:n] }); n > 0 {
				piece = piece[:len(piece)-n] + mask
			}
		}
		pieces[i] = piece
	}
	return strings.Join(pieces, cut)
}

func (m *masks) left(piece string, has func(text, part string) bool, part func(form string, n int) string) int {
	most := 0
	for _, form := range m.forms {
		for n := min(len(form)-1, len(piece)); n >= MinValue && n > most; n-- {
			if has(piece, part(form, n)) {
				most = n
			}
		}
	}
	return most
}
