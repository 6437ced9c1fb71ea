"""The magics of notebooks: ``%load_ext tachograph``. Like the command they stand above recorder and analyzer."""
