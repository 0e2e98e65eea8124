package console

import (
	"embed"
	"fmt"
	"html/template"
	"slices"
)

//go:embed *.html
var markup embed.FS

// templates parses each page with the frame around it and the shared pieces.
func (c *console) templates() (map[string]*template.Template, error) {
	frame, err := template.New("frame").Funcs(c.functions()).ParseFS(markup, "frame.html", "pieces.html", "forms.html")
	if err != nil {
		return nil, fmt.Errorf("parse the frame of the console's pages: %w", err)
	}
	all := map[string]*template.Template{}
	names := []string{"failed", "signin", "report"}
	for _, r := range routes() {
		names = append(names, r.name)
	}
	for _, a := range acts() {
		if !slices.Contains(names, a.name) {
			names = append(names, a.name)
		}
	}
	for _, name := range names {
		one, err := frame.Clone()
		if err == nil {
			one, err = one.ParseFS(markup, name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("parse page %s of the console: %w", name, err)
		}
		all[name] = one
	}
	return all, nil
}
