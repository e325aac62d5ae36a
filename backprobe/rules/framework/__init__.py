"""Running rules on a record: declaration, judging, findings, folding, suppression, options, manuals, plug-ins."""
