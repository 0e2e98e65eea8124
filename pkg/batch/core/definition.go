package core

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

// File by name.
func (d Definition) File(name string) (DefinitionFile, bool) {
	for _, f := range d.Files {
		if f.Name == name {
			return f, true
		}
	}
	return DefinitionFile{}, false
}
