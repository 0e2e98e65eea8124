package console

// Inert is the last step of every page.
func Inert(page []byte, mask func(text string) string) []byte { return inert(page, mask) }

// Downloads are the paths of all files.
func Downloads() []string {
	var list []string
	for _, r := range downloads() {
		list = append(list, r.pattern)
	}
	return list
}

// Patterns are the paths of all pages.
func Patterns() []string {
	var list []string
	for _, r := range routes() {
		list = append(list, r.pattern)
	}
	return list
}

// Forms are the paths of all pages with a form.
func Forms() []string {
	var list []string
	for _, a := range acts() {
		list = append(list, a.pattern)
	}
	return list
}
