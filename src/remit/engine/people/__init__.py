"""People: what they are asked, how their answers are waited for, and what an approval permits."""
