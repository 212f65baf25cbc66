package scheduler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gesso-go/gesso/internal/jsonwords"
)

// ConfigFile is the name of the configuration in a checkpoint's scheduler folder.
const ConfigFile = "scheduler_config.json"

// classes are the known methods, by Diffusers' name.
var classes = []struct {
	name string
	make func(object) (Scheduler, error)
}{
	{flowMatchEulerClass, func(o object) (Scheduler, error) {
		c, err := flowMatchEulerConfig(o)
		if err != nil {
			return nil, err
		}
		return NewFlowMatchEuler(c)
	}},
}

// Classes returns the names that New and Load know.
func Classes() []string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.name
	}
	return names
}

// Load makes the scheduler described by scheduler_config.json in dir.
func Load(dir string) (Scheduler, error) {
	path := filepath.Join(dir, ConfigFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load scheduler: %w", err)
	}
	s, err := New("", b)
	if err != nil {
		return nil, fmt.Errorf("load scheduler: %s: %w", path, err)
	}
	return s, nil
}

// New makes a scheduler of the named class, or when class is empty of the one that config names under _class_name.
// Config is the JSON object of a scheduler_config.json, which may have been written for another class: keys that the
// class does not have are ignored, missing ones take Diffusers' defaults.
func New(class string, config []byte) (Scheduler, error) {
	var o object
	if err := json.Unmarshal(config, &o); err != nil {
		return nil, jsonwords.Explain(config, err)
	}
	if class == "" {
		if err := o.text("_class_name", &class); err != nil {
			return nil, err
		}
		if class == "" {
			return nil, fmt.Errorf(`key "_class_name" is missing, expected one of %s`, strings.Join(Classes(), ", "))
		}
	}
	for _, c := range classes {
		if c.name == class {
			return c.make(o)
		}
	}
	return nil, fmt.Errorf("unknown scheduler class %q (known: %s)", class, strings.Join(Classes(), ", "))
}
