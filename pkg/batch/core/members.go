package core

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// eachMember calls f with each key (unescaped) and value of a JSON object, which
// must be valid JSON; false if it is no object. Both are void when f returns.
// Unlike a map of json.RawMessage it allocates nothing.
func eachMember(doc []byte, f func(key, value []byte)) bool {
	rest := bytes.TrimLeft(doc, jsonBlank)
	if len(rest) == 0 || rest[0] != '{' {
		return false
	}
	rest = bytes.TrimLeft(rest[1:], jsonBlank)
	for len(rest) > 0 && rest[0] == '"' {
		n := valueLen(rest)
		key := rest[1 : n-1]
		if !plainText(key) {
			text, ok := jsonText(rest[:n])
			if !ok {
				return false
			}
			key = []byte(text)
		}
		rest = bytes.TrimLeft(rest[n:], jsonBlank)
		rest = bytes.TrimLeft(rest[1:], jsonBlank) // the colon
		n = valueLen(rest)
		f(key, rest[:n:n])
		rest = bytes.TrimLeft(rest[n:], jsonBlank)
		rest = bytes.TrimLeft(rest[1:], jsonBlank) // the comma, or the object's end
	}
	return true
}

const jsonBlank = " \t\r\n"

// valueLen returns how many bytes the valid JSON value at the beginning of doc has.
func valueLen(doc []byte) int {
	switch doc[0] {
	case '"':
		return stringLen(doc)
	case '{', '[':
	default:
		if n := bytes.IndexAny(doc, ",]} \t\r\n"); n >= 0 {
			return n
		}
		return len(doc)
	}
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i += stringLen(doc[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(doc)
}

func stringLen(doc []byte) int {
	for i := 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// plainText reports whether the inside of a JSON string stands for itself.
func plainText(inside []byte) bool {
	return bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside)
}

// jsonText returns the text of a JSON string.
func jsonText(raw []byte) (string, bool) {
	if inside := raw[1 : len(raw)-1]; plainText(inside) {
		return string(inside), true
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
