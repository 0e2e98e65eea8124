package filestream

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func decodeAll(t testing.TB, encoding EncodingName, content string) string {
	t.Helper()
	text, err := io.ReadAll(input(t, "in.txt", content, InputConfig{Encoding: encoding}, nil))
	require.NoError(t, err)
	return string(text)
}

// A text that cannot be decoded exactly would be a value that was never
// written; one that cannot be encoded exactly would never be read again.
func TestEachCharacterThatAnEncodingWritesIsReadAsThatCharacter(t *testing.T) {
	t.Parallel()
	for _, info := range AllEncodings() {
		name := EncodingName(info.Name)
		enc, err := NewEncoder(name)
		require.NoError(t, err)
		var want, file bytes.Buffer
		file.Write(enc.BOM())
		written := 0
		for r := rune(0); r <= 0x1FFFF; r++ {
			if !utf8.ValidRune(r) || r == '\uFEFF' { // a mark at the beginning is not text
				continue
			}
			text := utf8.AppendRune(nil, r)
			encoded, err := enc.Append(nil, text)
			if err != nil {
				continue
			}
			written++
			want.Write(append(text, '\n'))
			file.Write(encoded)
			newline, err := enc.Append(nil, []byte("\n"))
			require.NoError(t, err)
			file.Write(newline)
		}
		require.GreaterOrEqual(t, written, 128, name)
		got := strings.Split(decodeAll(t, name, file.String()), "\n")
		for i, line := range strings.Split(want.String(), "\n") {
			require.Equal(t, line, got[i], "%s: character %+q", name, line)
		}
	}
}

func TestWhatAnEncodingLacksIsNeverAReplacementCharacter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		encoding      EncodingName
		content, want string
	}{
		{"utf-16", "\xff\xfea\x00\x00\xd8b\x00", "a\xffb"},                        // a high surrogate alone
		{"utf-16", "\xff\xfea\x00\x00\xdcb\x00", "a\xffb"},                        // a low one
		{"utf-16", "\xff\xfe\x00\xd8\x3d\xd8\x00\xde", "\xff\U0001F600"},          // two high ones: the second has its half
		{"utf-16be", "\x00a\xd8\x00", "a\xff"},                                    // a high one at the end
		{"utf-16", "\xff\xfea\x00b", "a\xff"},                                     // half a character at the end
		{"utf-16le", "a", "\xff"},                                                 //
		{"", "\xff\xfea\x00\x00\xd8", "a\xff"},                                    // declared by the mark
		{"utf-16", "\xff\xfe\xfd\xff", "\uFFFD"},                                  // the character itself is text
		{"utf-8", "\uFFFD", "\uFFFD"},                                             //
		{"gb18030", "\x84\x31\xa4\x37", "\uFFFD"},                                 //
		{"windows-1252", "a\x81b\x8d\x8f\x90\x9d\x80", "a\x81b\x8d\x8f\x90\x9d€"}, //
		{"windows-1253", "\xaa\xd2", "\xaa\xff"},                                  //
		{"iso-8859-1", "\x81", "\u0081"},                                          // it has all bytes
		{"iso-8859-6", "\xa1\xc3\xa9", "\xa1أ\xa9"},                               // two of them together are not UTF-8 either
		{"iso-8859-8", "\xbf\xc3\xdf\xe0", "\xbf\xff‗א"},                          //
		{"shift-jis", "\x83\x5c\x81\x20\x82\xa0\x82", "ソ\x81 あ\x82"},              // a trail byte may be a backslash
		{"euc-jp", "\xa4\xa2\xa4,\xff", "あ\xa4,\xff"},                             // a comma is never swallowed
		{"gbk", "\xd6\xd0\xd6\"\xfe\x50\xa1", "中\xff\"⺁\xa1"},                     //
		{"gb18030", "\x84\x31\xa4\x37\x84\x31\xff", "\uFFFD\x841\xff"},            //
		{"big5", "\xa4\xa4\xa4\n\x80", "中\xa4\n\x80"},                             //
		{"euc-kr", "\xb0\xa1\xb0,\xc9", "가\xb0,\xff"},                             //
	} {
		require.Equal(t, c.want, decodeAll(t, c.encoding, c.content), "%s %x", c.encoding, c.content)
		pad := strings.Repeat("x", readBytes-3) // across the buffers
		if EncodingName(CanonicalEncoding(c.encoding)) == "utf-8" || strings.HasPrefix(string(c.encoding), "utf-16") {
			continue
		}
		require.Equal(t, pad+c.want, decodeAll(t, c.encoding, pad+c.content), "%s %x, late", c.encoding, c.content)
	}
}

func TestACharacterThatAnEncodingLacksIsNamed(t *testing.T) {
	t.Parallel()
	for encoding, c := range map[EncodingName][2]string{
		"latin1":       {"5 €", `iso-8859-1 does not have the character '€' (U+20AC)`},
		"windows-1252": {"a\u0081", `windows-1252 does not have the character '\u0081' (U+0081)`},
		"iso-8859-6":   {"\uFFFD", `iso-8859-6 does not have the character '�' (U+FFFD)`},
		"sjis":         {"a é", `shift-jis does not have the character 'é' (U+00E9)`},
		"ibm037":       {"a €", `ibm037 does not have the character '€' (U+20AC)`},
	} {
		enc, err := NewEncoder(encoding)
		require.NoError(t, err)
		_, err = enc.Append(nil, []byte(c[0]))
		require.EqualError(t, err, c[1])
	}
}

func TestTheNamesOfEncodingsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range Encodings() {
		require.False(t, seen[name], name)
		require.Equal(t, strings.ToLower(name), name)
		seen[name] = true
		require.NoError(t, CheckEncoding(EncodingName(name)))
	}
	require.Equal(t, "iso-8859-1", CanonicalEncoding("latin1"))
	require.ErrorContains(t, CheckEncoding("klingon"), `unknown encoding "klingon" (allowed: utf-8, `)
}
