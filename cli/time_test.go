package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReport11TimesBeyondTheYear9999(t *testing.T) {
	for want, at := range map[string]time.Time{
		`"12345-01-02T03:04:05Z"`:          time.Date(12345, 1, 2, 3, 4, 5, 0, time.UTC),
		`"2026-01-02T03:04:05.000000006Z"`: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	} {
		got, err := json.Marshal(anyTime{at})
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}
