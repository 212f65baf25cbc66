package pipeline

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gesso-go/gesso/scheduler"
)

// LoadScheduler loads the component "scheduler", or when class is not empty another class configured from its file.
func LoadScheduler(f *Folder, class string) (scheduler.Scheduler, error) {
	if class == "" {
		return scheduler.Load(f.Path("scheduler"))
	}
	path := filepath.Join(f.Path("scheduler"), scheduler.ConfigFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load scheduler: %w", err)
	}
	s, err := scheduler.New(class, b)
	if err != nil {
		return nil, fmt.Errorf("load scheduler: %s: %w", path, err)
	}
	return s, nil
}
