package filestream

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// EncodingName is the value of an `encoding` key. The empty name is utf-8.
type EncodingName string

// Values lists the names (registry.Choice).
func (EncodingName) Values() []string { return Encodings() }

// Page is in the reference (registry.Choice).
func (EncodingName) Page() string { return "encodings.md" }

// EncodingInfo describes an encoding for the reference.
type EncodingInfo struct {
	Name  string
	Other []string // names that mean the same
	About string
}

const plainText = "UTF-8"

type codec struct {
	EncodingInfo
	utf8  bool
	units string           // UTF-16: le or be, unless a byte order mark decides
	page  *charmap.Charmap // one byte for each character
	multi encoding.Encoding
	bom   []byte // a writer begins with it
	// gaps means that C1 controls of page stand for bytes without a character: x/text fills the
	// holes of the Windows code pages so.
	gaps bool
}

func codecs() []codec {
	of := func(about, name string, other ...string) EncodingInfo {
		return EncodingInfo{Name: name, Other: other, About: about}
	}
	return slices.Concat([]codec{
		{EncodingInfo: of("the default", "utf-8", "utf8"), utf8: true},
		{EncodingInfo: of("UTF-8; a writer starts with a byte order mark, as Excel expects", "utf-8-bom", "utf-8-sig"), utf8: true, bom: []byte{0xEF, 0xBB, 0xBF}},
		{EncodingInfo: of("by the byte order mark, else little endian; a writer starts with a mark", "utf-16"), units: "le", bom: []byte{0xFF, 0xFE}},
		{EncodingInfo: of("little endian; a writer writes no mark", "utf-16le"), units: "le"},
		{EncodingInfo: of("big endian; a writer writes no mark", "utf-16be"), units: "be"},
		{EncodingInfo: of("Western Europe", "iso-8859-1", "latin1"), page: charmap.ISO8859_1},
		{EncodingInfo: of("Central Europe", "iso-8859-2", "latin2"), page: charmap.ISO8859_2},
		{EncodingInfo: of("Southern Europe", "iso-8859-3", "latin3"), page: charmap.ISO8859_3},
		{EncodingInfo: of("Northern Europe", "iso-8859-4", "latin4"), page: charmap.ISO8859_4},
		{EncodingInfo: of("Cyrillic", "iso-8859-5"), page: charmap.ISO8859_5},
		{EncodingInfo: of("Arabic", "iso-8859-6"), page: charmap.ISO8859_6},
		{EncodingInfo: of("Greek", "iso-8859-7"), page: charmap.ISO8859_7},
		{EncodingInfo: of("Hebrew", "iso-8859-8"), page: charmap.ISO8859_8},
		{EncodingInfo: of("Turkish", "iso-8859-9", "latin5"), page: charmap.ISO8859_9},
		{EncodingInfo: of("Nordic", "iso-8859-10", "latin6"), page: charmap.ISO8859_10},
		{EncodingInfo: of("Baltic", "iso-8859-13", "latin7"), page: charmap.ISO8859_13},
		{EncodingInfo: of("Celtic", "iso-8859-14", "latin8"), page: charmap.ISO8859_14},
		{EncodingInfo: of("Western Europe with €", "iso-8859-15", "latin9"), page: charmap.ISO8859_15},
		{EncodingInfo: of("South-Eastern Europe", "iso-8859-16", "latin10"), page: charmap.ISO8859_16},
	}, []codec{
		{EncodingInfo: of("Thai", "windows-874", "cp874"), page: charmap.Windows874, gaps: true},
		{EncodingInfo: of("Central Europe", "windows-1250", "cp1250"), page: charmap.Windows1250, gaps: true},
		{EncodingInfo: of("Cyrillic", "windows-1251", "cp1251"), page: charmap.Windows1251, gaps: true},
		{EncodingInfo: of("Western Europe: most files of Excel and Windows that are not UTF-8", "windows-1252", "cp1252"), page: charmap.Windows1252, gaps: true},
		{EncodingInfo: of("Greek", "windows-1253", "cp1253"), page: charmap.Windows1253, gaps: true},
		{EncodingInfo: of("Turkish", "windows-1254", "cp1254"), page: charmap.Windows1254, gaps: true},
		{EncodingInfo: of("Hebrew", "windows-1255", "cp1255"), page: charmap.Windows1255, gaps: true},
		{EncodingInfo: of("Arabic", "windows-1256", "cp1256"), page: charmap.Windows1256, gaps: true},
		{EncodingInfo: of("Baltic", "windows-1257", "cp1257"), page: charmap.Windows1257, gaps: true},
		{EncodingInfo: of("Vietnamese", "windows-1258", "cp1258"), page: charmap.Windows1258, gaps: true},
		{EncodingInfo: of("Russian", "koi8-r"), page: charmap.KOI8R},
		{EncodingInfo: of("Ukrainian, as browsers read it", "koi8-u"), page: charmap.KOI8U},
		{EncodingInfo: of("old Mac programs", "macintosh", "mac-roman"), page: charmap.Macintosh},
		{EncodingInfo: of("old Mac programs, Cyrillic", "mac-cyrillic"), page: charmap.MacintoshCyrillic},
		{EncodingInfo: of("EBCDIC, United States; its line end is LF (0x25), and NEL (0x15) is U+0085", "ibm037", "cp037"), page: charmap.CodePage037},
		{EncodingInfo: of("EBCDIC, Open Systems, with the line ends of ibm037", "ibm1047", "cp1047"), page: charmap.CodePage1047},
		{EncodingInfo: of("EBCDIC, ibm037 with €", "ibm1140", "cp1140"), page: charmap.CodePage1140},
		{EncodingInfo: of("DOS, United States", "ibm437", "cp437"), page: charmap.CodePage437},
		{EncodingInfo: of("DOS, Western Europe", "ibm850", "cp850"), page: charmap.CodePage850},
		{EncodingInfo: of("DOS, Central Europe", "ibm852", "cp852"), page: charmap.CodePage852},
		{EncodingInfo: of("DOS, Cyrillic", "ibm855", "cp855"), page: charmap.CodePage855},
		{EncodingInfo: of("DOS, Western Europe with €", "ibm858", "cp858"), page: charmap.CodePage858},
		{EncodingInfo: of("DOS, Portuguese", "ibm860", "cp860"), page: charmap.CodePage860},
		{EncodingInfo: of("DOS, Hebrew", "ibm862", "cp862"), page: charmap.CodePage862},
		{EncodingInfo: of("DOS, Canadian French", "ibm863", "cp863"), page: charmap.CodePage863},
		{EncodingInfo: of("DOS, Nordic", "ibm865", "cp865"), page: charmap.CodePage865},
		{EncodingInfo: of("DOS, Russian", "ibm866", "cp866"), page: charmap.CodePage866},
	}, []codec{
		{EncodingInfo: of("Japanese of Windows (code page 932)", "shift-jis", "shift_jis", "sjis", "cp932", "windows-31j"), multi: japanese.ShiftJIS},
		{EncodingInfo: of("Japanese of Unix, as browsers read it", "euc-jp"), multi: japanese.EUCJP},
		{EncodingInfo: of("Simplified Chinese (code page 936)", "gbk", "gb2312", "cp936"), multi: simplifiedchinese.GBK},
		{EncodingInfo: of("Chinese, all of Unicode", "gb18030"), multi: simplifiedchinese.GB18030},
		{EncodingInfo: of("Traditional Chinese, with HKSCS when read, as browsers read it (code page 950)", "big5", "cp950"), multi: traditionalchinese.Big5},
		{EncodingInfo: of("Korean (code page 949)", "euc-kr", "cp949", "uhc"), multi: korean.EUCKR},
	})
}

// AllEncodings describes all encodings, in the order of the reference.
func AllEncodings() []EncodingInfo {
	var list []EncodingInfo
	for _, c := range codecs() {
		list = append(list, c.EncodingInfo)
	}
	return list
}

// Encodings lists the values of an `encoding` key, for messages and schemas.
func Encodings() []string {
	var names []string
	for _, c := range codecs() {
		names = append(append(names, c.Name), c.Other...)
	}
	return names
}

// CheckEncoding reports a name that is not in Encodings.
func CheckEncoding(name EncodingName) error {
	_, err := codecOf(name)
	return err
}

// CanonicalEncoding returns one name for all encodings that write the same bytes.
func CanonicalEncoding(name EncodingName) string {
	if c, err := codecOf(name); err == nil {
		return c.Name
	}
	return string(name)
}

func codecOf(name EncodingName) (codec, error) {
	if name == "" {
		name = "utf-8"
	}
	for _, c := range codecs() {
		if c.Name == string(name) || slices.Contains(c.Other, string(name)) {
			return c, nil
		}
	}
	return codec{}, fmt.Errorf("unknown encoding %q (allowed: %s)", name, strings.Join(Encodings(), ", "))
}

func (c *codec) isGap(r rune) bool { return c.gaps && r >= 0x80 && r <= 0x9F }
