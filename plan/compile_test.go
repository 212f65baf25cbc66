package plan

import (
	"os"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
)

func TestMain(m *testing.M) {
	if aot.Main() {
		return
	}
	os.Exit(m.Run())
}
