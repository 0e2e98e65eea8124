package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Definition is the job's when the execution began (F4): its file and those it names.
type Definition struct {
	Hash string
	Text string
	// Path is the absolute file of Text, read again by a restart; or empty.
	Path  string
	Files []DefinitionFile
}

// DefinitionFile is named by a job file.
type DefinitionFile struct {
	// Name is relative to its folder, with slashes.
	Name string `json:"name"`
	Text string `json:"text"`
	Path string `json:"path,omitempty"`
}

// NewDefinition hashes the text, and each file's name and text, sorted, each after a NUL: hex sha256, without
// paths. Alone it is the text's hash.
func NewDefinition(text, path string, files []DefinitionFile) Definition {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b DefinitionFile) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	sum.Write([]byte(text))
	for _, f := range files {
		sum.Write([]byte("\x00" + f.Name + "\x00" + f.Text))
	}
	return Definition{Hash: hex.EncodeToString(sum.Sum(nil)), Text: text, Path: path, Files: files}
}

// File by name.
func (d Definition) File(name string) (DefinitionFile, bool) {
	for _, f := range d.Files {
		if f.Name == name {
			return f, true
		}
	}
	return DefinitionFile{}, false
}
