package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed code is what the .proto files generate.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	const committed = "../pb"
	sources, err := protoFiles(committed)
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	dir := t.TempDir()
	for _, s := range sources {
		raw, err := os.ReadFile(filepath.Join(committed, s))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(s)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, s), raw, 0o644))
	}
	require.NoError(t, generate(context.Background(), dir))
	for _, s := range sources {
		name := strings.TrimSuffix(s, ".proto") + ".pb.go"
		want, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(committed, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is out of date: run go generate ./lance/internal/pb", name)
	}
}

func TestGenerateReportsErrors(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, generate(context.Background(), dir), "no .proto files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.proto"), []byte("syntax = \"proto3\";\nmessage {"), 0o644))
	require.ErrorContains(t, generate(context.Background(), dir), "bad.proto:2")
}
