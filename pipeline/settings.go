package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// SettingsFile may lie in a model's folder beside model_index.json. It says how the model is best called; a request's own
// values win.
const SettingsFile = "gesso.json"

// Settings are the defaults of one model. A zero field leaves the pipeline's default.
type Settings struct {
	Steps             int      `json:"steps"`
	Height            int      `json:"height"`
	Width             int      `json:"width"`
	MaxSequenceLength int      `json:"max_sequence_length"`
	Guidance          *float64 `json:"guidance"`
}

// Settings reads the folder's SettingsFile, if there is one.
func (f *Folder) Settings() (Settings, error) {
	var s Settings
	path := filepath.Join(f.Dir, SettingsFile)
	if err := ReadJSON(path, &s); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		return s, err
	}
	for key, v := range map[string]int{"steps": s.Steps, "height": s.Height, "width": s.Width, "max_sequence_length": s.MaxSequenceLength} {
		if v < 0 {
			return s, fmt.Errorf("%s: key %q must not be negative, got %d", path, key, v)
		}
	}
	return s, nil
}
