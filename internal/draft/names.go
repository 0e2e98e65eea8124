package draft

import (
	"fmt"
	"strings"
	"unicode"
)

type names map[string]bool

func (n names) of(from string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(from) {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "_") {
			b.WriteByte('_')
		}
	}
	name := strings.TrimRight(b.String(), "_")
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "f_" + name
	}
	unique := name
	for i := 2; n[unique]; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	n[unique] = true
	return unique
}
